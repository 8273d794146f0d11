"""The layer of `torch.ao.nn.intrinsic.quantized.dynamic`."""

from .......compat.missing import module_getattr
from .linear_relu import LinearReLU

__all__ = ["LinearReLU"]
__getattr__ = module_getattr(__name__)
