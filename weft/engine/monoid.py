"""Describes reductions by expressions: the state of one element, the combination of two, the results of the last.

The constants below fix the order of combination. It depends on the number of elements only, so that the bits of a result do not
depend on the number of threads. Lanes, streams and levels are those of PyTorch's sum on one thread.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.dtype import DType, int64
from .expr import Expr, node
from .loops import Result

LEVELS = 4  # levels of partial results in a cascade
STREAMS = 4  # independent partial results, each as wide as a vector register
CARRIED_ROWS = 16  # the fewest rows that fill a level of a cascade; in longer runs more rows do
PANEL = 8  # blocks of columns that are reduced side by side, so that memory is read along its rows
CHUNK_ROWS = 4096  # rows of a chunk, for monoids whose rounding does not depend on the order


class Monoid(NamedTuple):
    """The expressions of a reduction. States are tuples of expressions."""

    to_state: tuple[Expr, ...]  # the state of one element: made of loads and `index()`
    left: tuple[Expr, ...]  # the parameters of `combine`: two states
    right: tuple[Expr, ...]
    combine: tuple[Expr, ...]  # of `left` and `right`
    append: tuple[Expr, ...]  # the same where `right` is the state of one element, behind those of `left`
    identity: tuple[Expr, ...]  # constants
    cascade: bool  # whether rounding depends on the order, so that levels of partial results are kept
    finish: tuple[Result, ...]  # the stored results, of `left` and the params
    exact: bool = False  # whether `combine` never rounds, so that states may be combined in any order

    @property
    def has_any_order(self) -> bool:
        """Whether the order in which states are combined changes no bit of the results."""
        return self.exact or all(each.dtype.kind in "iu" for each in self.identity)


def index() -> Expr:
    """The position of the element along the reduced dims, for ops that return one."""
    return node("load", int64, (), "index")


def state_leaf(side: str, position: int, dtype: DType) -> Expr:
    """A component of a state that `combine` and `finish` are given: side "l" or "r"."""
    return node("load", dtype, (), f"{side}{position}")


def vector_lanes(monoid: Monoid) -> int:
    """The number of elements in 32 bytes of state, the vector width that defines PyTorch's order."""
    return max(1, 32 // max(each.dtype.itemsize for each in monoid.identity))


def block_width(monoid: Monoid, columns: int) -> int:
    """The number of columns that are reduced together: four registers, or four columns if they do not fill one register."""
    lanes = vector_lanes(monoid)
    return STREAMS * lanes if columns >= lanes else STREAMS


def chunks(monoid: Monoid, length: int) -> int:
    """The number of chunks of a contiguous run of `length` elements that workers may reduce without changing a bit.

    A chunk is a range of rows whose sum the cascade adds to its highest level in one step.
    """
    rows = length // (STREAMS * vector_lanes(monoid))
    if not monoid.cascade:
        return rows // CHUNK_ROWS
    power = max(4, max(rows - 1, 0).bit_length() // LEVELS)
    return rows >> (LEVELS - 1) * power


def slot_bytes(width: int) -> int:
    """The bytes that one component of `width` states takes in memory."""
    return 64 * ((width * 8 + 63) // 64)


def chunk_bytes(monoid: Monoid) -> int:
    """The bytes that the state of a chunk takes."""
    return slot_bytes(STREAMS * vector_lanes(monoid)) * len(monoid.identity)
