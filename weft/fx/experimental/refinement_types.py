"""Equations between types."""

from __future__ import annotations

from typing import Any


class Equality:
    """Two things are equal.

    >>> Equality(1, 2)
    1 = 2
    """

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.lhs = lhs
        self.rhs = rhs

    def __str__(self) -> str:
        return f"{self.lhs} = {self.rhs}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equality) and self.lhs == other.lhs and self.rhs == other.rhs
