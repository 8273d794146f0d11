"""`torch.backends.xeon`: a launcher of programs on many cores."""

from weft.compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("run_cpu",))
