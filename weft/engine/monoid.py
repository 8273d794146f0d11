"""What a reduction computes: the state of one element, how two states combine, what the final state gives.

Also in which portions: lanes, streams, levels and chunks fix the order of combination by the number of elements alone.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.dtype import DType, int64
from .expr import Expr, node
from .loops import Result

LEVELS = 4  # of partial results in a cascade
STREAMS = 4  # independent rows of a vector register's width
PANEL = 8  # blocks of columns that are reduced side by side, so that memory is read along its rows
CHUNK_ROWS = 4096  # rows of a chunk where rounding does not depend on the order


class Monoid(NamedTuple):
    """How elements become one value. States are tuples of expressions."""

    to_state: tuple[Expr, ...]  # the state of one element: made of loads and `index()`
    left: tuple[Expr, ...]  # the parameters of `combine`: two states
    right: tuple[Expr, ...]
    combine: tuple[Expr, ...]  # of `left` and `right`
    identity: tuple[Expr, ...]  # constants
    cascade: bool  # rounding depends on the order: keep levels of partial results
    finish: tuple[Result, ...]  # of `left` and the params: what is stored


def index() -> Expr:
    """The position of the element along the reduced dims, for ops that return one."""
    return node("load", int64, (), "index")


def state_leaf(side: str, position: int, dtype: DType) -> Expr:
    """A component of a state that `combine` and `finish` are given: side "l" or "r"."""
    return node("load", dtype, (), f"{side}{position}")


def vector_lanes(monoid: Monoid) -> int:
    """Elements in 32 bytes of state: the width that PyTorch's order is defined with."""
    return max(1, 32 // max(each.dtype.itemsize for each in monoid.identity))


def block_width(monoid: Monoid, columns: int) -> int:
    """How many columns to reduce together: four registers' worth, or four where not even one register fills."""
    lanes = vector_lanes(monoid)
    return STREAMS * lanes if columns >= lanes else STREAMS


def chunks(monoid: Monoid, length: int) -> int:
    """How many chunks of a contiguous run of `length` elements may be reduced apart without changing a bit.

    A chunk is what the cascade carries into its highest level at once.
    """
    rows = length // (STREAMS * vector_lanes(monoid))
    if not monoid.cascade:
        return rows // CHUNK_ROWS
    power = max(4, max(rows - 1, 0).bit_length() // LEVELS)
    return rows >> (LEVELS - 1) * power


def slot_bytes(width: int) -> int:
    """The room of one component of `width` states in memory."""
    return 64 * ((width * 8 + 63) // 64)


def chunk_bytes(monoid: Monoid) -> int:
    """The room of a chunk's state."""
    return slot_bytes(STREAMS * vector_lanes(monoid)) * len(monoid.identity)
