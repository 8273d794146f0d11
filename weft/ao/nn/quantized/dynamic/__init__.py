"""`torch.ao.nn.quantized.dynamic`: layers of floats with quantized weights, which quantize their input when they are called."""

from .....compat.missing import module_getattr
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__ = module_getattr(__name__, ("modules",))
