"""`torch._vendor.packaging`: the package `packaging`, where it is installed."""

from weft.compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("version",))
