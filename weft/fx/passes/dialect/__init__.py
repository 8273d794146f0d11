"""Passes for graphs of particular kinds of operations."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("common",))
