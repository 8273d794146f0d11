"""`torch.ao.nn.intrinsic`: layers that are quantized as one."""

from ....compat.missing import module_getattr
from .modules import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
__getattr__ = module_getattr(__name__, ("modules", "quantized"))
