"""`torch.ao.nn.intrinsic`: layers that are quantized as one."""

from ....compat.missing import module_getattr
from .modules import *  # noqa: F403
from .modules import __all__ as __all__
from .modules.fused import _FusedModule as _FusedModule  # libraries ask for it

__getattr__ = module_getattr(__name__, ("modules", "qat", "quantized"))
