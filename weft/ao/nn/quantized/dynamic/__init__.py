"""`torch.ao.nn.quantized.dynamic`: layers of floats with quantized weights, which quantize their input when they are called."""

from .....compat.missing import module_getattr
from .modules import Linear

__all__ = ["Linear"]
__getattr__ = module_getattr(__name__, ("modules",))
