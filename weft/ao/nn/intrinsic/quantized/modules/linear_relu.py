"""The quantized linear layer that ends with ReLU."""

from ......compat.missing import module_getattr
from ....quantized import Linear


class LinearReLU(Linear):
    """A quantized linear layer and ReLU, which costs nothing."""

    _relu = True

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


__getattr__ = module_getattr(__name__)
