"""Matrices in the lanes of vectors: arithmetic on them, and how they come from a stack and go back to it.

A *group* has as many matrices as a vector has lanes. They lie in the workspace column by column, an element's vector in each line of 64
bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..core.dtype import DType, float32
from .llvm import constant, value_type
from .sliding import LINE
from .structured import Body
from .vectors import broadcast, lanes_below, load_lanes, store_lanes, transposed


class Matrix(NamedTuple):
    """The vectors of a matrix in the workspace: element (i, j) is at `base` + i * `row` + j * `column` bytes."""

    base: str
    height: str
    width: str
    row: str | int
    column: str | int


class Group:
    """What the functions that write kernels need: a group's place in the operands, and arithmetic on vectors."""

    def __init__(self, b: Body, dtype: DType, meta: dict[str, str], first: str, scratch: str):
        self.b, self.dtype, self.meta, self.first = b, dtype, meta, first
        self.lanes = LINE // dtype.itemsize
        self.vector, self.integers = value_type(dtype, self.lanes), f"<{self.lanes} x i32>"
        self.free = scratch
        self.zero, self.one = (self.number(value) for value in (0.0, 1.0))

    # ---- Arithmetic ----

    def number(self, value: float) -> str:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        if self.dtype is float32:
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return constant(self.dtype, bits, self.lanes)

    def two(self, operation: str, x: str, y: str) -> str:
        return self.b.let(f"{operation} {self.vector} {x}, {y}")

    def call(self, name: str, *operands: str) -> str:
        return self.b.intrinsic(name, self.dtype, self.lanes, *operands)

    def chosen(self, mask: str, x: str, y: str, kind: str = "") -> str:
        kind = kind or self.vector
        return self.b.let(f"select <{self.lanes} x i1> {mask}, {kind} {x}, {kind} {y}")

    def compare(self, condition: str, x: str, y: str) -> str:
        return self.b.let(f"fcmp {condition} {self.vector} {x}, {y}")

    def index(self, value: str) -> str:
        """Return an index in every lane."""
        return broadcast(self.b, "i32", self.lanes, self.b.let(f"trunc i64 {value} to i32"))

    # ---- The workspace ----

    def room(self, lines: str) -> str:
        """The address of so many lines, rounded up so that `_block` may touch whole squares of lanes."""
        b, address = self.b, self.free
        whole = b.integer("and", b.integer("add", lines, self.lanes - 1), -self.lanes)
        self.free = b.place(address, (whole, LINE))
        return address

    def matrix(self, height: str, width: str) -> Matrix:
        """Room for a matrix, stored column by column."""
        b = self.b
        return Matrix(
            self.room(b.integer("mul", height, width)), height, width, LINE, b.integer("mul", height, LINE)
        )

    def place(self, matrix: Matrix, i: str | int, j: str | int) -> str:
        b = self.b
        return b.place(matrix.base, (matrix.row, i), (matrix.column, j))

    def load(self, matrix: Matrix, i: str | int, j: str | int) -> str:
        return self.b.get(self.place(matrix, i, j), self.vector)

    def store(self, matrix: Matrix, i: str | int, j: str | int, value: str) -> None:
        self.b.set(self.place(matrix, i, j), self.vector, value)

    @contextmanager
    def elements(self, matrix: Matrix) -> Iterator[tuple[str, str]]:
        """Return a loop over the columns, and within it one over the rows: the indices (i, j) of an element."""
        with self.b.loop(0, matrix.width) as j, self.b.loop(0, matrix.height) as i:
            yield i, j

    def fill_identity(self, matrix: Matrix) -> None:
        with self.elements(matrix) as (i, j):
            self.store(matrix, i, j, self.zero)
        with self.b.loop(0, self.b.minimum(matrix.height, matrix.width)) as k:
            self.store(matrix, k, k, self.one)

    # ---- Operands ----

    def read(self, operand: int, target: Matrix, row: str, column: str) -> None:
        """Fill a matrix from an operand, whose elements have these distances between rows and columns (bytes of the workspace)."""
        count = self.b.integer("mul", target.height, target.width)
        staged = target._replace(base=self.room(count), row=row, column=column)
        self._blocks(operand, staged.base, count, self.dtype, True)
        with self.elements(target) as (i, j):
            self.store(target, i, j, self.load(staged, i, j))

    def read_matrix(self) -> Matrix:
        """Return the first operand in new room."""
        a = self.matrix(self.meta["height"], self.meta["width"])
        self.read(0, a, self.meta["row"], self.meta["column"])
        return a

    def write(self, operand: int, base: str, count: str, dtype: DType | None = None) -> None:
        """Store so many lines as the elements of each matrix of an operand, one after the other."""
        self._blocks(operand, base, count, dtype or self.dtype, False)

    def write_one(self, operand: int, value: str, dtype: DType) -> None:
        """Store one element for each matrix."""
        b = self.b
        inside = lanes_below(b, self.lanes, b.integer("sub", self.meta["count"], self.first))
        address = b.place(self.base(operand), (self.first, dtype.itemsize))
        store_lanes(b, dtype, self.lanes, value, address, inside)

    def base(self, operand: int) -> str:
        return self.b.operands(operand, operand + 1)[0]

    def write_part(self, operand: int, base: str, count: str, place: str, parts: str) -> None:
        """Store `count` lines as part number `place`, which each lane has, of the parts of each matrix of an operand."""
        b, size = self.b, self.dtype.itemsize
        starts = []
        for k, matrix in enumerate(
            self._matrices(operand, b.integer("mul", b.integer("mul", count, parts), size))
        ):
            number = b.let(f"sext i32 {b.let(f'extractelement {self.integers} {place}, i64 {k}')} to i64")
            starts.append(b.place(matrix, (b.integer("mul", number, count), size)))
        self._transpose(starts, base, count, self.dtype, False)

    def _matrices(self, operand: int, stride: str) -> list[str]:
        """Return the address of each lane's matrix in an operand."""
        b, base, last = self.b, self.base(operand), self.b.integer("sub", self.meta["count"], 1)
        # Lanes behind the last matrix work on the last matrix, too. So they read valid memory, and write the same values to it.
        return [
            b.place(base, (b.minimum(b.integer("add", self.first, k), last), stride))
            for k in range(self.lanes)
        ]

    def _blocks(self, operand: int, lines: str, count: str, dtype: DType, reads: bool) -> None:
        """Move all elements of the matrices of an operand, of which each has `count`."""
        stride = self.b.integer("mul", count, dtype.itemsize)
        self._transpose(self._matrices(operand, stride), lines, count, dtype, reads)

    def _transpose(self, starts: list[str], lines: str, count: str, dtype: DType, reads: bool) -> None:
        """Transpose squares: as many elements as there are lanes, which follow each other from the addresses `starts` on."""
        b, lanes, size, kind = self.b, self.lanes, dtype.itemsize, value_type(dtype, self.lanes)
        with b.loop(0, count, lanes) as element:
            mask = lanes_below(b, lanes, b.integer("sub", count, element))
            addresses = [b.place(start, (element, size)) for start in starts]
            line = b.place(lines, (element, LINE))
            places = [b.at(line, LINE * k) for k in range(lanes)]
            if reads:
                rows = [load_lanes(b, dtype, lanes, address, mask) for address in addresses]
                for place, row in zip(places, transposed(b, kind, rows), strict=True):
                    b.set(place, kind, row)
            else:
                rows = transposed(b, kind, [b.get(place, kind) for place in places])
                for address, row in zip(addresses, rows, strict=True):
                    store_lanes(b, dtype, lanes, row, address, mask)
