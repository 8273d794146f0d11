"""The layers of `torch.ao.nn.intrinsic`."""

from .....compat.missing import module_getattr
from .fused import ConvReLU1d, ConvReLU2d, ConvReLU3d, LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
__getattr__ = module_getattr(__name__)
