"""`torch._vendor`: packages that PyTorch brings with it."""

from weft.compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("packaging",))
