"""`torch.ao.nn.intrinsic.quantized`: quantized layers that are made of several layers."""

from .....compat.missing import module_getattr
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__ = module_getattr(__name__, ("dynamic", "modules"))
