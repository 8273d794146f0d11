"""Passes as objects, and what carries out a number of them."""

from ....compat.missing import module_getattr

__getattr__ = module_getattr(__name__, ("partitioner", "pass_base", "pass_manager"))
