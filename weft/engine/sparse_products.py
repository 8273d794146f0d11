"""Products with a compressed sparse matrix, as LLVM IR: of its rows, of its columns, and of two dense matrices where it has entries.

The matrix has pointers to where the entries of each row (of each major, in general) begin, and the column (the minor) of each entry.
No kernel reads or writes outside of its operands, whatever these indices are: an entry out of range counts as one of the last minor,
pointers that do not rise within the entries count as a row without entries, and both set the word `faults`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..core.dtype import DType
from .kernel import Code, compile_loop
from .llvm import suffix, value_type
from .structured import Body, function
from .vectors import broadcast, lanes_below, masked_load, masked_store

# Vectors of columns that are added up side by side in registers: 64 columns of float32.
ABREAST = 4
# Entries: how far ahead of its use a row of the dense matrix is asked for. Such rows lie anywhere in memory, so that the processor
# does not foresee them.
AHEAD = 12
# Entries: in rows with as many, loading the elements of the vector one by one is faster than gathering them; in shorter ones a second
# loop costs more than that. Measured on AMD Zen 4: 10^6 entries in rows of 100 take 0.49 ms of one thread (0.66 if gathered), in rows of
# 10 they take 1.1 ms gathered (1.8).
LONG_ROW = 32
LANES = 8  # terms of a row that are added up side by side in its product with a vector

_PARAMETERS = "ptr %operands, ptr %meta, i64 %begin, i64 %end"


class SparseMatrix(NamedTuple):
    """A compressed matrix: how many majors, minors and entries it has, and where its parts are."""

    majors: int
    minors: int
    entries: int
    index_dtype: DType  # of the pointers and of the minors
    pointers: np.ndarray
    minor_indices: int
    values: int


class _Matrix:
    """The operands that all kernels share: faults, pointers, minors, values. meta begins with: majors, minors, entries."""

    def __init__(self, b: Body, dtype: DType, index: DType, first: int):
        self.b, self.dtype, self.index = b, dtype, index
        self.faults, self.pointers, self.minors, self.values = operands(b, first, first + 4)
        self.minor_count, self.entries = words(b, 1, 3)
        self.last_minor = b.integer("sub", self.minor_count, 1)
        self.greatest = b.variable("i64", "0")  # of the minors that were read, as an unsigned number

    def pointer(self, major: str) -> str:
        return self._index(self.pointers, major)

    def bounds(self, major: str) -> tuple[str, str]:
        """Where the entries of a major begin and end."""
        b = self.b
        begin, end = self.pointer(major), self.pointer(b.integer("add", major, 1))
        rising = b.let(f"icmp ule i64 {begin}, {end}")
        inside = b.let(f"icmp ule i64 {end}, {self.entries}")
        valid = b.let(f"and i1 {rising}, {inside}")
        self._unless(valid)
        return b.let(f"select i1 {valid}, i64 {begin}, i64 0"), b.let(f"select i1 {valid}, i64 {end}, i64 0")

    def minor(self, entry: str) -> str:
        """The minor of an entry, which exists: the last one if it is out of range."""
        b = self.b
        found = self._index(self.minors, entry)
        for name, value in (("umax", b.get(self.greatest, "i64")), ("umin", self.last_minor)):
            b.declarations.add(f"declare i64 @llvm.{name}.i64(i64, i64)")
            inside = b.let(f"call i64 @llvm.{name}.i64(i64 {found}, i64 {value})")
            if name == "umax":
                b.set(self.greatest, "i64", inside)
        return inside

    def check(self) -> None:
        """Note a fault if a minor that was read is out of range."""
        self._unless(self.b.let(f"icmp ult i64 {self.b.get(self.greatest, 'i64')}, {self.minor_count}"))

    def ask(self, entry: str, rows: str, row_bytes: str, offset: str) -> None:
        """Ask for the row of a dense matrix that a later entry will need, if there is such an entry."""
        b = self.b
        later = b.minimum(b.integer("add", entry, AHEAD), b.integer("sub", self.entries, 1))
        row = self._index(self.minors, later)
        address = b.at(rows, b.integer("add", b.integer("mul", row, row_bytes), offset))
        b.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for line in range(ABREAST):  # asking for memory that is not mapped does nothing
            b.do(f"call void @llvm.prefetch.p0(ptr {b.at(address, 64 * line)}, i32 0, i32 3, i32 1)")

    def value(self, entry: str) -> list[str]:
        """The value of an entry: its real part, and its imaginary part if it is complex."""
        return numbers(self.b, self.dtype, self.values, entry)

    def _index(self, base: str, i: str) -> str:
        b, kind = self.b, f"i{8 * self.index.itemsize}"
        found = b.let(f"load {kind}, ptr {b.let(f'getelementptr {kind}, ptr {base}, i64 {i}')}")
        return found if kind == "i64" else b.let(f"sext {kind} {found} to i64")

    def _unless(self, valid: str) -> None:
        with self.b.when(self.b.let(f"xor i1 {valid}, true")):
            self.b.do(f"store i64 1, ptr {self.faults}")


def operands(b: Body, first: int, stop: int) -> list[str]:
    return [b.let(f"load ptr, ptr {b.at('%operands', 8 * k)}") for k in range(first, stop)]


def words(b: Body, first: int, stop: int) -> list[str]:
    return [b.let(f"load i64, ptr {b.at('%meta', 8 * k)}") for k in range(first, stop)]


def numbers(b: Body, dtype: DType, base: str, i: str) -> list[str]:
    """The parts of number i of an array: one, or two if it is complex."""
    real = value_type(dtype.part or dtype)
    count = 2 if dtype.is_complex else 1
    address = b.at(base, b.integer("mul", i, dtype.itemsize))
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
        if mask:
            return masked_load(self.b, self.real, self.lanes, address, mask)
        return self.b.let(f"load {self.kind}, ptr {address}, align {self.real.itemsize}")

    def store(self, value: str, address: str, mask: str) -> None:
        if mask:
            masked_store(self.b, self.real, self.lanes, value, address, mask)
        else:
            self.b.do(f"store {self.kind} {value}, ptr {address}, align {self.real.itemsize}")

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
        """total + factor * x."""
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


def _code(count: int, write: Callable[[Body], None]) -> Code:
    declarations: set[str] = set()
    text = function("loop", _PARAMETERS, declarations, write)
    return compile_loop("\n".join([*sorted(declarations), text]), count, "", vectorize=False)


@functools.cache
def rows_code(dtype: DType, index: DType) -> Code:
    """result [majors, width] = matrix @ dense [minors, width], a loop over parts of the majors.

    operands: result, faults, pointers, minors, values, dense, and the first major of each part and of none, int64.
    meta: majors, minors, entries, the real numbers of a row of the dense matrices.
    The terms of an element are added in the order of the entries, each fused with its product.
    """

    def write(b: Body) -> None:
        matrix, columns = _Matrix(b, dtype, index, 1), _Columns(b, dtype)
        (result,), (dense, bounds) = operands(b, 0, 1), operands(b, 5, 7)
        (width,) = words(b, 3, 4)
        size = columns.real.itemsize
        row_bytes = b.integer("mul", width, size)
        begin, end = _part(b, bounds)
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            target = b.at(result, b.integer("mul", major, row_bytes))

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

    return _code(7, write)


@functools.cache
def vector_code(dtype: DType, index: DType) -> Code:
    """result [majors] = matrix @ vector [minors]: operands and meta of `rows_code`, whose width is not read.

    Each of eight lanes adds up every eighth term of a row, fused with its product; then the lanes are added in pairs. A vector holds
    eight numbers of any dtype, so that the order of the sum does not depend on it.
    """

    def write(b: Body) -> None:
        matrix, real = _Matrix(b, dtype, index, 1), dtype.part or dtype
        kind, vector_kind = value_type(real), value_type(real, LANES)
        (result,), (vector, bounds) = operands(b, 0, 1), operands(b, 5, 7)
        begin, end = _part(b, bounds)
        parts = 2 if dtype.is_complex else 1
        greatest = b.variable(f"<{LANES} x i64>", "zeroinitializer")
        last = broadcast(b, "i64", LANES, matrix.last_minor)
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            sums = [b.variable(vector_kind, "zeroinitializer") for _ in range(parts)]
            count = b.integer("sub", stop, first)
            unmasked = b.let(f"select i1 {b.let(f'icmp sge i64 {count}, {LONG_ROW}')}, i64 {count}, i64 0")
            whole = b.integer("add", first, b.integer("and", unmasked, -LANES))

            def add(entry: str, mask: str) -> None:
                places = _clamped(b, matrix, entry, mask, last, greatest)
                x = [_gathered(b, dtype, vector, places, part, mask) for part in range(parts)]
                y = _entries(b, dtype, matrix.values, entry, b.integer("sub", stop, entry), mask)
                _add_products(b, real, sums, x, y)

            with b.loop(first, whole, LANES) as entry:
                add(entry, "")
            with b.loop(whole, stop, LANES) as entry:
                add(entry, lanes_below(b, LANES, b.integer("sub", stop, entry)))
            place = b.at(result, b.integer("mul", major, dtype.itemsize))
            for part, total in enumerate(sums):
                summed = _sum_of_lanes(b, real, LANES, b.get(total, vector_kind))
                b.do(f"store {kind} {summed}, ptr {b.at(place, part * real.itemsize)}")
        b.declarations.add(f"declare i64 @llvm.vector.reduce.umax.v{LANES}i64(<{LANES} x i64>)")
        most = b.let(
            f"call i64 @llvm.vector.reduce.umax.v{LANES}i64(<{LANES} x i64> {b.get(greatest, f'<{LANES} x i64>')})"
        )
        b.set(matrix.greatest, "i64", most)
        matrix.check()

    return _code(7, write)


def _clamped(b: Body, matrix: _Matrix, entry: str, mask: str, last: str, greatest: str) -> str:
    """The minors of the entries in the lanes of the mask, the last one in place of those out of range. `greatest`: see `_Matrix`."""
    kind = f"<{LANES} x i64>"
    address = b.at(matrix.minors, b.integer("mul", entry, matrix.index.itemsize))
    minors = _loaded(b, matrix.index, LANES, address, mask)
    if matrix.index.itemsize == 4:
        minors = b.let(f"zext <{LANES} x i32> {minors} to {kind}")
    for name in ("umax", "umin"):
        b.declarations.add(f"declare {kind} @llvm.{name}.v{LANES}i64({kind}, {kind})")
    b.set(
        greatest,
        kind,
        b.let(f"call {kind} @llvm.umax.v{LANES}i64({kind} {minors}, {kind} {b.get(greatest, kind)})"),
    )
    return b.let(f"call {kind} @llvm.umin.v{LANES}i64({kind} {minors}, {kind} {last})")


def _gathered(b: Body, dtype: DType, vector: str, places: str, part: int, mask: str) -> str:
    """The parts of the numbers at some places of a vector: the real parts, or the imaginary ones."""
    real = dtype.part or dtype
    kind, base = value_type(real, LANES), b.at(vector, part * real.itemsize)
    if dtype.is_complex:
        places = b.let(f"shl <{LANES} x i64> {places}, splat (i64 1)")
    if not mask:
        scalar, found = value_type(real), "poison"
        for lane in range(LANES):
            at = b.let(f"extractelement <{LANES} x i64> {places}, i64 {lane}")
            x = b.let(f"load {scalar}, ptr {b.let(f'getelementptr {scalar}, ptr {base}, i64 {at}')}")
            found = b.let(f"insertelement {kind} {found}, {scalar} {x}, i64 {lane}")
        return found
    addresses = b.let(f"getelementptr {value_type(real)}, ptr {base}, <{LANES} x i64> {places}")
    name = f"@llvm.masked.gather.{suffix(real, LANES)}.v{LANES}p0"
    b.declarations.add(f"declare {kind} {name}(<{LANES} x ptr>, i32, <{LANES} x i1>, {kind})")
    return b.let(
        f"call {kind} {name}(<{LANES} x ptr> {addresses}, i32 {real.itemsize}, <{LANES} x i1> {mask}, {kind} zeroinitializer)"
    )


def _entries(b: Body, dtype: DType, values: str, entry: str, count: str, mask: str) -> list[str]:
    """The values of at most eight neighbouring entries: the real parts, and the imaginary ones if they are complex."""
    address = b.at(values, b.integer("mul", entry, dtype.itemsize))
    if not dtype.is_complex:
        return [_loaded(b, dtype, LANES, address, mask)]
    assert dtype.part is not None
    kind = value_type(dtype.part, 2 * LANES)
    wide = lanes_below(b, 2 * LANES, b.integer("mul", count, 2)) if mask else ""
    pairs = _loaded(b, dtype.part, 2 * LANES, address, wide)
    orders = [", ".join(f"i32 {2 * k + part}" for k in range(LANES)) for part in range(2)]
    return [
        b.let(f"shufflevector {kind} {pairs}, {kind} poison, <{LANES} x i32> <{order}>") for order in orders
    ]


def _loaded(b: Body, dtype: DType, lanes: int, address: str, mask: str) -> str:
    if mask:
        return masked_load(b, dtype, lanes, address, mask)
    return b.let(f"load {value_type(dtype, lanes)}, ptr {address}, align {dtype.itemsize}")


def _add_products(b: Body, real: DType, sums: Sequence[str], x: Sequence[str], y: Sequence[str]) -> None:
    """Add the products of x and y to the variables `sums`; each of the three has one part, or two for complex numbers."""
    kind = value_type(real, LANES)
    terms = [[(x[0], y[0])]]
    if len(sums) == 2:
        terms = [[(x[0], y[0]), (b.let(f"fneg {kind} {x[1]}"), y[1])], [(x[0], y[1]), (x[1], y[0])]]
    for total, products in zip(sums, terms, strict=True):
        for left, right in products:
            b.set(total, kind, b.intrinsic("fma", real, LANES, left, right, b.get(total, kind)))


def _sum_of_lanes(b: Body, real: DType, lanes: int, vector: str) -> str:
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


def _part(b: Body, bounds: str) -> list[str]:
    """The majors of the parts that this call is for: the first one, and the one behind the last."""
    return [
        b.let(f"load i64, ptr {b.let(f'getelementptr i64, ptr {bounds}, i64 {at}')}")
        for at in ("%begin", "%end")
    ]


@functools.cache
def columns_code(dtype: DType, index: DType) -> Code:
    """result [minors, width] += matrix transposed @ dense [majors, width], a loop over groups of columns.

    operands: result, faults, pointers, minors, values, dense. meta: majors, minors, entries, the real numbers of a row, those of a group.
    The terms of an element are added in the order of the majors, each fused with its product.
    """

    def write(b: Body) -> None:
        matrix, columns = _Matrix(b, dtype, index, 1), _Columns(b, dtype)
        (result,), (dense,) = operands(b, 0, 1), operands(b, 5, 6)
        (majors,), (width, group) = words(b, 0, 1), words(b, 3, 5)
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

    return _code(6, write)


@functools.cache
def sampled_code(dtype: DType, index: DType) -> Code:
    """result [entries] = at each entry, the dot product of its row of left [majors, width] and of right [minors, width].

    operands: result, faults, pointers, minors, left, right, and the bounds of the parts; meta: that of `rows_code`. Numbers are real;
    the terms of each lane are added in order, then the lanes in pairs.
    """

    def write(b: Body) -> None:
        columns = _Columns(b, dtype)
        matrix = _Matrix(b, dtype, index, 1)
        (result,), (left, right, bounds) = operands(b, 0, 1), operands(b, 4, 7)
        (width,) = words(b, 3, 4)
        size, kind = dtype.itemsize, value_type(dtype)
        row_bytes = b.integer("mul", width, size)
        begin, end = _part(b, bounds)
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            row = b.at(left, b.integer("mul", major, row_bytes))
            with b.loop(first, stop) as entry:
                column = b.at(right, b.integer("mul", matrix.minor(entry), row_bytes))
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
                summed = _sum_of_lanes(b, dtype, columns.lanes, b.get(total, columns.kind))
                b.do(
                    f"store {kind} {summed}, ptr {b.let(f'getelementptr {kind}, ptr {result}, i64 {entry}')}"
                )
        matrix.check()

    return _code(7, write)
