"""Passes for graphs of all kinds of operations."""

from .....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("cse_pass",))
