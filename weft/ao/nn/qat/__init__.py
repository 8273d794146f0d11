"""`torch.ao.nn.qat`: layers that are trained with the rounded weights that their quantized layers will have."""

from ....compat.missing import module_getattr
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__ = module_getattr(__name__, ("dynamic", "modules"))
