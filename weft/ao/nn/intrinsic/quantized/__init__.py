"""`torch.ao.nn.intrinsic.quantized`: quantized layers that end with ReLU."""

from .....compat.missing import module_getattr
from .modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
__getattr__ = module_getattr(__name__, ("modules",))
