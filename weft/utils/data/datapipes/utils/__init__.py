"""Helpers of data pipes."""

from .....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("common", "decoder", "snapshot"))
