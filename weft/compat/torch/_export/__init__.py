"""`torch._export`: what programs prepare for `torch.export`."""

from weft.compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("wrappers",))
