"""Branches and loops as functions."""

from ..._higher_order_ops import cond, map
from ...compat.missing import module_getattr

__all__ = ["cond", "map"]

__getattr__ = module_getattr(__name__)
