"""The layers of `torch.ao.nn.qat.dynamic`."""

from ......compat.missing import module_getattr
from .linear import Linear

__all__ = ["Linear"]
__getattr__ = module_getattr(__name__)
