"""`torch.ao.nn.quantized.reference`: layers of floats that say how their weights are quantized."""

from .....compat.missing import module_getattr
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__ = module_getattr(__name__, ("modules",))
