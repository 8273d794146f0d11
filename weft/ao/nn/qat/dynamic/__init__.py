"""`torch.ao.nn.qat.dynamic`: layers for quantization-aware training whose input is quantized when they are called."""

from .....compat.missing import module_getattr
from .modules import Linear

__all__ = ["Linear"]
__getattr__ = module_getattr(__name__, ("modules",))
