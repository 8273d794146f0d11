"""`torch._vendor`: packages that PyTorch brings with it."""

from ..compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("packaging",))
