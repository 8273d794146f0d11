"""Products with a compressed sparse matrix, as LLVM IR: of its rows, of its columns, and of two dense matrices where it has entries.

The matrix has pointers to where the entries of each row (of each major, in general) begin, and the column (the minor) of each entry.
No kernel reads or writes outside of its operands, whatever these indices are: an entry out of range counts as one of the last minor,
pointers that do not rise within the entries count as a row without entries, and both set the word `faults`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..core.dtype import DType
from .kernel import Code, loop_code
from .llvm import value_type
from .structured import Body
from .vectors import broadcast, lanes_below, load_lanes, prefetch, store_lanes

# Vectors of columns that are added up side by side in registers: 64 columns of float32.
ABREAST = 4
# Entries: how far ahead of its use a row of the dense matrix is asked for. Such rows lie anywhere in memory, so that the processor
# does not foresee them.
AHEAD = 12


class SparseMatrix(NamedTuple):
    """A compressed matrix: how many majors, minors and entries it has, and where its parts are."""

    majors: int
    minors: int
    entries: int
    index_dtype: DType  # of the pointers and of the minors
    pointers: int
    minor_indices: int
    values: int


class Matrix:
    """The operands that all kernels share: faults, pointers, minors, values. meta begins with: majors, minors, entries.

    The parts of the second matrix of a kernel are the three operands after those of the first, and so are its sizes in meta.
    """

    def __init__(self, b: Body, dtype: DType, index: DType, faults: int, number: int = 0):
        self.b, self.dtype, self.index = b, dtype, index
        (self.faults,), parts = b.operands(faults, faults + 1), faults + 1 + 3 * number
        self.pointers, self.minors, self.values = b.operands(parts, parts + 3)
        self.minor_count, self.entries = b.meta(3 * number + 1, 3 * number + 3)
        self.last_minor = b.integer("sub", self.minor_count, 1)
        self.greatest = b.variable("i64", "0")  # of the minors that were read, as an unsigned number

    def pointer(self, major: str) -> str:
        return self._index(self.pointers, major)

    def bounds(self, major: str, stop: str = "", within: Sequence[str] = ()) -> tuple[str, str]:
        """Where the entries of a major, or of the majors before `stop`, begin and end. `within`: the bounds of more majors."""
        b = self.b
        begin, end = self.pointer(major), self.pointer(stop or b.integer("add", major, 1))
        least, most = within or ("0", self.entries)
        valid = "true"
        for lower, higher in ((least, begin), (begin, end), (end, most)):
            rising = b.let(f"icmp ule i64 {lower}, {higher}")
            valid = b.let(f"and i1 {valid}, {rising}")
        self._unless(valid)
        return b.let(f"select i1 {valid}, i64 {begin}, i64 0"), b.let(f"select i1 {valid}, i64 {end}, i64 0")

    def minor(self, entry: str) -> str:
        """The minor of an entry, which exists: the last one if it is out of range."""
        found = self.raw_minor(entry)
        self.note(found)
        self.b.declarations.add("declare i64 @llvm.umin.i64(i64, i64)")
        return self.b.let(f"call i64 @llvm.umin.i64(i64 {found}, i64 {self.last_minor})")

    def raw_minor(self, entry: str) -> str:
        return self._index(self.minors, entry)

    def note(self, minor: str) -> None:
        """Let `check` see a minor."""
        self.b.declarations.add("declare i64 @llvm.umax.i64(i64, i64)")
        greatest = self.b.get(self.greatest, "i64")
        self.b.set(self.greatest, "i64", self.b.let(f"call i64 @llvm.umax.i64(i64 {minor}, i64 {greatest})"))

    def check(self) -> None:
        """Set `faults` if a minor that was noted is out of range."""
        self._unless(self.b.let(f"icmp ult i64 {self.b.get(self.greatest, 'i64')}, {self.minor_count}"))

    def ask(self, entry: str, rows: str, row_bytes: str, offset: str) -> None:
        """Ask for the row of a dense matrix that a later entry will need, if there is such an entry."""
        b = self.b
        later = b.minimum(b.integer("add", entry, AHEAD), b.integer("sub", self.entries, 1))
        row = self._index(self.minors, later)
        address = b.at(rows, b.integer("add", b.integer("mul", row, row_bytes), offset))
        for line in range(ABREAST):
            prefetch(b, b.at(address, 64 * line))

    def value(self, entry: str) -> list[str]:
        """The value of an entry: its real part, and its imaginary part if it is complex."""
        return numbers(self.b, self.dtype, self.values, entry)

    def _index(self, base: str, i: str) -> str:
        b, kind = self.b, f"i{8 * self.index.itemsize}"
        found = b.let(f"load {kind}, ptr {b.let(f'getelementptr {kind}, ptr {base}, i64 {i}')}")
        return found if kind == "i64" else b.let(f"sext {kind} {found} to i64")

    def _unless(self, valid: str) -> None:
        with self.b.unless(valid):
            self.b.do(f"store i64 1, ptr {self.faults}")


def numbers(b: Body, dtype: DType, base: str, i: str) -> list[str]:
    """The parts of number i of an array: one, or two if it is complex."""
    real = value_type(dtype.part or dtype)
    count = 2 if dtype.is_complex else 1
    address = b.place(base, (i, dtype.itemsize))
    return [
        b.let(f"load {real}, ptr {address if part == 0 else b.at(address, dtype.itemsize // 2)}")
        for part in range(count)
    ]


class _Columns:
    """Vectors of neighbouring columns of dense matrices. Complex numbers lie as pairs of real ones."""

    def __init__(self, b: Body, dtype: DType):
        self.b, self.dtype = b, dtype
        self.real = dtype.part or dtype
        self.lanes = 64 // self.real.itemsize
        self.kind = value_type(self.real, self.lanes)

    def load(self, address: str, mask: str) -> str:
        return load_lanes(self.b, self.real, self.lanes, address, mask)

    def store(self, value: str, address: str, mask: str) -> None:
        store_lanes(self.b, self.real, self.lanes, value, address, mask)

    def factors(self, value: Sequence[str]) -> list[str]:
        """A number in all lanes: its real part; its imaginary part with the signs that swapped pairs are multiplied with."""
        scalar = value_type(self.real)
        found = [broadcast(self.b, scalar, self.lanes, part) for part in value]
        if self.dtype.is_complex:
            minus = self.b.let(f"fneg {self.kind} {found[1]}")
            order = ", ".join(f"i32 {k if k % 2 else self.lanes + k}" for k in range(self.lanes))
            found[1] = self.b.let(
                f"shufflevector {self.kind} {found[1]}, {self.kind} {minus}, <{self.lanes} x i32> <{order}>"
            )
        return found

    def add(self, total: str, factors: Sequence[str], x: str) -> str:
        """Compute total + factor * x."""
        b = self.b
        total = b.intrinsic("fma", self.real, self.lanes, factors[0], x, total)
        if self.dtype.is_complex:
            order = ", ".join(f"i32 {k ^ 1}" for k in range(self.lanes))
            swapped = b.let(
                f"shufflevector {self.kind} {x}, {self.kind} poison, <{self.lanes} x i32> <{order}>"
            )
            total = b.intrinsic("fma", self.real, self.lanes, factors[1], swapped, total)
        return total

    def blocks(self, width: str, write: Callable[[str, list[str]], None]) -> None:
        """Call `write(first column, masks)` for blocks of vectors of columns; the mask of a whole vector is empty.

        Columns are those of real numbers; `width` is how many there are.
        """
        b, size = self.b, self.lanes * ABREAST
        whole = b.integer("sub", width, b.integer("urem", width, size))
        with b.loop(0, whole, size) as first:
            write(first, [""] * ABREAST)
        with b.loop(whole, width, self.lanes) as first:
            write(first, [lanes_below(b, self.lanes, b.integer("sub", width, first))])


@functools.cache
def rows_code(dtype: DType, index: DType) -> Code:
    """Write result [majors, width] = matrix @ dense [minors, width], a loop over parts of the majors.

    operands: result, faults, pointers, minors, values, dense, and the first major of each part and of none, int64.
    meta: majors, minors, entries, the real numbers of a row of the dense matrices.
    The terms of an element are added in the order of the entries, each fused with its product.
    """

    def write(b: Body) -> None:
        matrix, columns = Matrix(b, dtype, index, 1), _Columns(b, dtype)
        (result,), (dense, bounds) = b.operands(0, 1), b.operands(5, 7)
        (width,) = b.meta(3, 4)
        size = columns.real.itemsize
        row_bytes = b.integer("mul", width, size)
        begin, end = part_of(b, bounds)
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            target = b.place(result, (major, row_bytes))

            def block(column: str, masks: list[str]) -> None:
                offset = b.integer("mul", column, size)
                totals = [b.variable(columns.kind, "zeroinitializer") for _ in masks]
                with b.loop(first, stop) as entry:
                    source = b.at(
                        dense, b.integer("add", b.integer("mul", matrix.minor(entry), row_bytes), offset)
                    )
                    matrix.ask(entry, dense, row_bytes, offset)
                    factors = columns.factors(matrix.value(entry))
                    for k, (total, mask) in enumerate(zip(totals, masks, strict=True)):
                        x = columns.load(b.at(source, 64 * k), mask)
                        b.set(total, columns.kind, columns.add(b.get(total, columns.kind), factors, x))
                place = b.at(target, offset)
                for k, (total, mask) in enumerate(zip(totals, masks, strict=True)):
                    columns.store(b.get(total, columns.kind), b.at(place, 64 * k), mask)

            columns.blocks(width, block)
        matrix.check()

    return loop_code(write, 7, vectorize=False)


def sum_of_lanes(b: Body, real: DType, lanes: int, vector: str) -> str:
    """The sum of the lanes: the upper half is added to the lower one until one is left."""
    scalar = value_type(real)
    while lanes > 1:
        kind, half = f"<{lanes} x {scalar}>", lanes // 2
        parts = []
        for first in (0, half):
            order = ", ".join(f"i32 {first + k}" for k in range(half))
            parts.append(b.let(f"shufflevector {kind} {vector}, {kind} poison, <{half} x i32> <{order}>"))
        vector, lanes = b.let(f"fadd <{half} x {scalar}> {parts[0]}, {parts[1]}"), half
    return b.let(f"extractelement <1 x {scalar}> {vector}, i64 0")


def part_of(b: Body, bounds: str) -> list[str]:
    """The majors of the parts that this call is for: the first one, and the one behind the last."""
    return [
        b.let(f"load i64, ptr {b.let(f'getelementptr i64, ptr {bounds}, i64 {at}')}")
        for at in ("%begin", "%end")
    ]


@functools.cache
def columns_code(dtype: DType, index: DType) -> Code:
    """Write result [minors, width] += matrix transposed @ dense [majors, width], a loop over groups of columns.

    operands: result, faults, pointers, minors, values, dense. meta: majors, minors, entries, the real numbers of a row, those of a group.
    The terms of an element are added in the order of the majors, each fused with its product.
    """

    def write(b: Body) -> None:
        matrix, columns = Matrix(b, dtype, index, 1), _Columns(b, dtype)
        (result,), (dense,) = b.operands(0, 1), b.operands(5, 6)
        (majors,), (width, group) = b.meta(0, 1), b.meta(3, 5)
        size = columns.real.itemsize
        row_bytes = b.integer("mul", width, size)
        low = b.integer("mul", "%begin", group)
        high = b.minimum(b.integer("mul", "%end", group), width)
        own = b.integer("sub", high, low)
        with b.loop(0, majors) as major:
            first, stop = matrix.bounds(major)
            source = b.at(
                dense, b.integer("add", b.integer("mul", major, row_bytes), b.integer("mul", low, size))
            )
            with b.loop(first, stop) as entry:
                factors = columns.factors(matrix.value(entry))
                row = b.integer(
                    "add", b.integer("mul", matrix.minor(entry), row_bytes), b.integer("mul", low, size)
                )
                target = b.at(result, row)
                matrix.ask(entry, result, row_bytes, b.integer("mul", low, size))

                def block(column: str, masks: list[str]) -> None:
                    offset = b.integer("mul", column, size)
                    for k, mask in enumerate(masks):
                        here = b.at(b.at(target, offset), 64 * k)
                        x = columns.load(b.at(b.at(source, offset), 64 * k), mask)
                        columns.store(columns.add(columns.load(here, mask), factors, x), here, mask)

                columns.blocks(own, block)
        matrix.check()

    return loop_code(write, 6, vectorize=False)


@functools.cache
def sampled_code(dtype: DType, index: DType) -> Code:
    """Write result [entries] = at each entry, the dot product of rows of left [majors, width] and right [minors, width].

    operands: result, faults, pointers, minors, left, right, and the bounds of the parts; meta: that of `rows_code`. Numbers are real;
    the terms of each lane are added in order, then the lanes in pairs.
    """

    def write(b: Body) -> None:
        columns = _Columns(b, dtype)
        matrix = Matrix(b, dtype, index, 1)
        (result,), (left, right, bounds) = b.operands(0, 1), b.operands(4, 7)
        (width,) = b.meta(3, 4)
        size, kind = dtype.itemsize, value_type(dtype)
        row_bytes = b.integer("mul", width, size)
        begin, end = part_of(b, bounds)
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            row = b.place(left, (major, row_bytes))
            with b.loop(first, stop) as entry:
                column = b.place(right, (matrix.minor(entry), row_bytes))
                matrix.ask(entry, right, row_bytes, "0")
                total = b.variable(columns.kind, "zeroinitializer")

                def block(at: str, masks: list[str]) -> None:
                    offset = b.integer("mul", at, size)
                    for k, mask in enumerate(masks):
                        x, y = (
                            columns.load(b.at(b.at(base, offset), 64 * k), mask) for base in (row, column)
                        )
                        b.set(
                            total,
                            columns.kind,
                            b.intrinsic("fma", dtype, columns.lanes, x, y, b.get(total, columns.kind)),
                        )

                columns.blocks(width, block)
                summed = sum_of_lanes(b, dtype, columns.lanes, b.get(total, columns.kind))
                b.do(
                    f"store {kind} {summed}, ptr {b.let(f'getelementptr {kind}, ptr {result}, i64 {entry}')}"
                )
        matrix.check()

    return loop_code(write, 7, vectorize=False)
