"""`torch.ao.nn.quantized`: layers of quantized tensors."""

from ....compat.missing import module_getattr
from ....nn import MaxPool2d
from .modules import *  # noqa: F403
from .modules import __all__ as _layers

__all__ = [*_layers, "MaxPool2d"]
__getattr__ = module_getattr(__name__, ("dynamic", "functional", "modules", "reference"))
