"""The layers of `torch.ao.nn.intrinsic.quantized`."""

from ......compat.missing import module_getattr
from .conv_relu import ConvReLU1d, ConvReLU2d, ConvReLU3d
from .linear_relu import LinearReLU

__all__ = ["ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
__getattr__ = module_getattr(__name__)
