"""`torch.ao.nn.intrinsic.qat`: layers that are quantized as one, for quantization-aware training."""

from .....compat.missing import module_getattr
from .modules import *  # noqa: F403
from .modules import __all__ as __all__

__getattr__ = module_getattr(__name__, ("modules",))
