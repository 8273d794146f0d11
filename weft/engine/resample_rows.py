"""Weighted sums of neighbouring elements along the last dim, as LLVM IR, for resizing images.

Rows are taken in groups, whose elements at one position lie side by side in a buffer, so that a vector sums all rows of a group. Squares
of elements are transposed in registers on the way into the buffer, and on the way from the sums to the result. Sums are those of
`resample.py`, bit for bit.

Measured on AMD Zen 3, one thread, [57344, 56] float32 to 28 columns: 5.5 ms; two transposed copies and sums between
them took 16.6.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from ..core.dtype import DType, float32, float64, uint8
from .kernel import Code, loop_code
from .resample import Sums
from .structured import Body
from .vectors import transposed

# The side of the squares, and how many of them make a group of rows.
_SQUARES = {uint8: (16, 1), float32: (8, 2), float64: (4, 2)}
_COLUMNS = 1024  # of the input, that the buffer has room for
_BLOCK = 32  # positions of the result


def blocks_of(dtype: DType, rows: int, own: int, bounds: np.ndarray) -> np.ndarray | None:
    """The blocks of positions of the result, int64 [count, 4]: the first and the one behind the last, and those of the input they need.

    bounds: the first element and the number of elements of each position [size, 2]. None if rows or columns are too few for a square, or
    the elements of a block too many for the buffer.
    """
    side, squares = _SQUARES[dtype]
    size = len(bounds)
    if rows < side * squares or own < side or size < side:
        return None
    for block in (_BLOCK, side):
        # The last block has up to 2 * block - 1 positions.
        begin = np.arange(0, size, block)[: max(size // block, 1)]
        end = np.append(begin[1:], size)
        low = np.minimum(np.minimum.reduceat(bounds[:, 0], begin), own - side)
        high = np.maximum(np.maximum.reduceat(bounds.sum(1), begin), low + side)
        if (high - low).max() <= _COLUMNS:
            return np.stack([begin, end, low, high], 1).astype(np.int64)
    return None


def groups_of(dtype: DType, rows: int) -> int:
    """How many groups there are; the last one may have rows of the one before."""
    side, squares = _SQUARES[dtype]
    return -(-rows // (side * squares))


@functools.cache
def resample_rows_code(dtype: DType) -> Code:
    """Call `entry(result, input, weights, table, blocks, meta, groups)`.

    table: int64 [size, 2], first and count. blocks: those of `blocks_of`. meta: size, own, taps, the bits behind the point of int16
    weights, rows, the number of blocks.
    """
    return loop_code(lambda body: _Groups(body, dtype).write(), 5)


class _Groups(Sums):
    def __init__(self, body: Body, dtype: DType):
        super().__init__(body, dtype)
        self.side, self.squares = _SQUARES[dtype]
        self.lanes = self.side * self.squares
        self.square = self.many(self.element, self.side)
        self.pitch = self.lanes * self.nbytes  # bytes of one position in the buffers
        self.columns = body.room(_COLUMNS * self.pitch)
        self.positions = body.room(2 * _BLOCK * self.pitch)

    def write(self) -> None:
        b = self.body
        result, input, self.weights, self.table, blocks = b.operands(5)
        size, own, self.taps, self.bits, rows, count = b.meta(6)
        with b.loop("%begin", "%end") as group:
            row = b.minimum(b.integer("mul", group, self.lanes), b.integer("sub", rows, self.lanes))
            source = b.place(input, (b.integer("mul", row, own), self.nbytes))
            target = b.place(result, (b.integer("mul", row, size), self.nbytes))
            with b.loop(0, count) as block:
                words = b.place(blocks, (block, 32))
                begin, end, low, high = b.words(words, 4)
                for column, place in self.steps(low, high):
                    self.transpose(self.rows(source, own, column), self.lines(self.columns, place))
                with b.loop(begin, end) as i:
                    self.add_up(i, low, b.integer("sub", i, begin))
                for i, place in self.steps(begin, end):
                    self.transpose(self.lines(self.positions, place), self.rows(target, size, i))

    def steps(self, start: str, stop: str) -> Iterator[tuple[str, str]]:
        """The first column of each square between two columns, and its place in the buffer. The last square ends at `stop`."""
        b = self.body
        with b.loop(start, stop, self.side) as column:
            first = b.minimum(column, b.integer("sub", stop, self.side))
            yield first, b.integer("sub", first, start)

    def rows(self, base: str, width: str, column: str) -> list[list[str]]:
        """Return the addresses of the rows of each square, from a column on."""
        b, found = self.body, []
        for square in range(self.squares):
            starts = [b.integer("mul", width, square * self.side + k) for k in range(self.side)]
            places = [b.integer("mul", b.integer("add", start, column), self.nbytes) for start in starts]
            found.append([b.at(base, place) for place in places])
        return found

    def lines(self, buffer: str, place: str) -> list[list[str]]:
        """Return the addresses of the columns of each square in a buffer."""
        b = self.body
        first = b.place(buffer, (place, self.pitch))
        return [
            [b.at(first, k * self.pitch + square * self.side * self.nbytes) for k in range(self.side)]
            for square in range(self.squares)
        ]

    def transpose(self, sources: list[list[str]], targets: list[list[str]]) -> None:
        b = self.body
        for rows, columns in zip(sources, targets, strict=True):
            vectors = [b.let(f"load {self.square}, ptr {row}, align {self.nbytes}") for row in rows]
            for vector, column in zip(transposed(b, self.square, vectors), columns, strict=True):
                b.do(f"store {self.square} {vector}, ptr {column}, align {self.nbytes}")

    def add_up(self, i: str, low: str, place: str) -> None:
        """Return sum position i of all rows of the group."""
        b, kind = self.body, self.many(self.element, self.lanes)
        entry = b.place(self.table, (i, 16))
        first, count = b.words(entry, 2)
        start = b.place(self.columns, (b.integer("sub", first, low), self.pitch))
        weight = b.place(self.weights, (b.integer("mul", i, self.taps), self.weight_bytes))
        total = b.variable(self.many(self.sum, self.lanes), self.start(self.lanes))
        with b.loop(0, count) as j:
            found = b.let(f"load {kind}, ptr {b.place(start, (j, self.pitch))}, align {self.nbytes}")
            self.add(total, found, b.place(weight, (j, self.weight_bytes)), self.lanes)
        target = b.place(self.positions, (place, self.pitch))
        b.do(f"store {kind} {self.result(total, self.lanes)}, ptr {target}, align {self.nbytes}")
