"""Branches and loops as functions."""

from weft.compat.missing import module_getattr
from weft.library.higher_order import cond, map

__all__ = ["cond", "map"]

__getattr__ = module_getattr(__name__)
