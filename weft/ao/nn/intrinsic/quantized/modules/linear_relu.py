"""The quantized linear layer that ends with ReLU."""

from __future__ import annotations

from typing import Any

from ......compat.missing import module_getattr
from ......core.dtype import qint8
from ....quantized import Linear


class LinearReLU(Linear):
    """A quantized linear layer and ReLU, which costs nothing."""

    _relu = True

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


__getattr__ = module_getattr(__name__)
