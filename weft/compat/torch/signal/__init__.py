"""Signal processing, `torch.signal`."""

from weft.compat.missing import module_getattr

from . import windows

__all__ = ["windows"]

__getattr__ = module_getattr(__name__)
