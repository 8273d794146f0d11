"""A kernel whose groups compute squares of a matrix, from squares of two others in memory of the group.

`products.Tiles` computes them by its threads, one element after the other, `FragmentSquares` by small products of its warps.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, uint16
from .fragments import COLUMNS, ITEMSIZE, ROWS, TERMS, Fragments, Side, Tile
from .kernel import Kernel
from .target import Target

SMALL, LARGE = 64, 128  # rows, and columns, of a square that warps compute
WAVES = 2  # large squares for each multiprocessor, from which on squares are large


class Warps(NamedTuple):
    """How warps compute squares."""

    side: int
    tensor_cores: bool


def squares_of(side: int, rows: int, columns: int) -> int:
    """How many squares of this side cover a matrix."""
    return -(-rows // side) * -(-columns // side)


def large_or_small(gpu: Any, rows: int, columns: int, products: int) -> Warps:
    """Large squares if there are enough of them for all multiprocessors, because they read less, else small ones."""
    tensor_cores = gpu.runtime.small_products == "tensor cores"
    large, small = (Warps(side, tensor_cores) for side in (LARGE, SMALL))
    if (
        min(rows, columns) <= SMALL
        or products * squares_of(LARGE, rows, columns) < WAVES * gpu.runtime.multiprocessors
    ):
        return small
    return large


class Element(NamedTuple):
    """An element that a thread copies to memory of the group."""

    operand: int  # 0: the line is a row of the left matrix, 1: a column of the right one
    line: str
    term: str
    place: str  # its address
    inside: str  # whether there is one; if not, it is 0
    safe: str  # an address that can be read in any case


class Squares(Kernel):
    """The interface of both kinds."""

    own: str  # the position of this thread in its group
    side: int  # rows, and columns, of a square
    at_once: int  # terms that are in memory of the group

    def squares(self, size: str) -> str:
        """How many squares so many rows or columns take."""
        return self.integer("udiv", self.integer("add", size, self.side - 1), self.side)

    @abstractmethod
    def new_square(self) -> Any:
        """Variables for what this thread has of a square, set to 0."""

    @abstractmethod
    def fetch_elements(self, dtype: DType, elements: Sequence[Element]) -> None:
        """Copy elements of a dtype to memory of the group."""

    @abstractmethod
    def multiply_square(self, sums: Any) -> None:
        """Add the products of all terms that are in memory of the group."""

    def add_elements(self, sums: Any, dtype: DType, elements: Sequence[Element]) -> None:
        """Copy elements to memory of the group, after all threads have used those before, and add the products of their terms."""
        self.barrier()
        self.fetch_elements(dtype, elements)
        self.barrier()
        self.multiply_square(sums)

    def square_of(self, terms: str, copy: Callable[[str], None]) -> Any:
        """Return the sums of a square. `copy(first)` copies the terms from `first` on of both operands to memory of the group."""
        sums = self.new_square()
        with self.loop(0, terms, self.at_once) as first:
            self.barrier()
            copy(first)
            self.barrier()
            self.multiply_square(sums)
        return sums

    @abstractmethod
    def each_of_square(
        self, sums: Any, first: tuple[str, str], ends: tuple[str, str], store: Callable
    ) -> None:
        """Write code for each sum that is a result: `store(row, column, parts)`. first: the row and the column of the square."""


class FragmentSquares(Squares, Fragments):
    """Squares of narrow numbers. The warps of a group, four above each other and two side by side, have parts of the square."""

    DOWN, ACROSS = 4, 2  # warps of a group
    at_once = 2 * TERMS

    def __init__(
        self,
        target: Target,
        dtype: DType,
        warps: Warps,
        terms_in_rows: tuple[bool, bool],
        right: DType | None = None,
    ):
        """terms_in_rows: whether the rows of the squares of the left and of the right matrix in memory of the group have terms."""
        Fragments.__init__(self, target, dtype, warps.tensor_cores, right)
        self.side, self.terms_in_rows, self.own = warps.side, terms_in_rows, self.position
        self.both = [self._tile(each) for each in terms_in_rows]
        self.first_row, self.first_column = self._own(self.DOWN, "udiv"), self._own(self.ACROSS, "urem")
        self._left = self.left_side(self.both[0], terms_in_rows[0], self.first_row)
        self._right: Side = self.right_side(self.both[1], terms_in_rows[1], self.first_column)

    def _tile(self, terms_in_rows: bool) -> Tile:
        sizes = self.side, self.at_once
        return self.tile(*(sizes if terms_in_rows else reversed(sizes)))

    def _own(self, warps: int, part: str) -> str:
        """The first row, or column, of this warp in the square."""
        return self.integer("mul", self.integer(part, self.warp, self.ACROSS), self.side // warps)

    def new_square(self) -> list[list[list[str]]]:
        return [self.new_sums(self.side // self.ACROSS) for _ in range(self.side // self.DOWN // ROWS)]

    def fetch_elements(self, dtype: DType, elements: Sequence[Element]) -> None:
        """All are loaded before one is stored, to wait once for the loads."""
        loaded = []
        for each in elements:
            place = self.let(f"select i1 {each.inside}, i64 {each.place}, i64 {each.safe}")
            loaded.append(self.read(place, uint16))
        for each, value in zip(elements, loaded, strict=True):
            at = (each.line, each.term) if self.terms_in_rows[each.operand] else (each.term, each.line)
            slot = self.slot_of(self.both[each.operand], *at)
            found = self.let(f"select i1 {each.inside}, i16 {value}, i16 0")
            self.do(f"store i16 {found}, ptr addrspace(3) {slot}, align {ITEMSIZE}")

    def multiply_square(self, sums: list[list[list[str]]]) -> None:
        for term in range(0, self.at_once, TERMS):
            right = self.right(self._right, COLUMNS * len(sums[0]), term)
            for k, own in enumerate(sums):
                self.multiply(own, self.left(self._left, ROWS * k, term), right)

    def corners(
        self, sums: list[list[list[str]]], row: str, column: str
    ) -> list[tuple[str, str, list[list[str]]]]:
        """The row and the column where each block of 16 rows of this warp begins, and its sums."""
        left = self.integer("add", column, self.first_column)
        return [
            (
                self.integer("add", row, self.integer("add", self.first_row, ROWS * k)),
                left,
                self.sums_of(own),
            )
            for k, own in enumerate(sums)
        ]

    def each_of_square(
        self, sums: list[list[list[str]]], first: tuple[str, str], ends: tuple[str, str], store: Callable
    ) -> None:
        def alone(row: str, column: str, value: str) -> None:
            store(row, column, [value])

        for row, column, values in self.corners(sums, *first):
            self.each_sum(ends, row, column, values, alone)
