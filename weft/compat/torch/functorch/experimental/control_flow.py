"""Branches and loops as functions."""

from weft.library.higher_order import cond, map

__all__ = ["cond", "map"]
