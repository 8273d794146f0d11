"""Computes products of two compressed sparse matrices, as LLVM IR.

A thread computes row by row (Gustavson's algorithm): for each entry of the row of the left matrix, it adds the products with a row of the
right matrix to an array of all columns. A first kernel counts the entries of each row of the result, a second one fills them in.
Like all kernels of sparse matrices, these never read or write outside of their operands, see `sparse_products.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..core.dtype import DType, int32
from .kernel import Code, loop_code
from .llvm import value_type
from .sparse_products import AHEAD, Matrix, numbers, part_of
from .structured import Body
from .vectors import prefetch

# A set of columns is a tree: a bit of the lowest level says whether a column is in the set, a bit of a higher level whether any of
# 64 neighbouring bits below is set. So a row of some entries is read in order without looking at all columns, and without sorting.
LEVELS = 3


def set_words(columns: int) -> list[int]:
    """How many words of 64 bits each level of a set has, from the lowest one on."""
    sizes = [columns]
    for _ in range(LEVELS):
        sizes.append(-(-sizes[-1] // 64))
    return sizes[1:]


def count_room(columns: int) -> int:
    """The bytes of memory, zero at first, that each part of the work of `count_code` and `sampled_pairs_code` needs for marks."""
    return (4 * columns + 63) & -64


def fill_room(columns: int, dtype: DType) -> int:
    """The same for `fill_code`: the set of the columns of a row, and their sums."""
    return (8 * sum(set_words(columns)) + columns * dtype.itemsize + 63) & -64


@functools.cache
def count_code(index: DType) -> Code:
    """counts [majors] = the number of columns that each row of the product has, a loop over parts of the rows.

    operands: counts (int64), faults, pointers, minors and values of both matrices (values are not read), bounds of the parts, room.
    meta: majors, minors and entries of both matrices, the bytes of room of a part.
    """

    def write(b: Body) -> None:
        left, right = (Matrix(b, int32, index, 1, number) for number in range(2))
        (counts,), (bounds, rooms) = b.operands(0, 1), b.operands(8, 10)
        marks = _own_room(b, rooms)
        begin, end = part_of(b, bounds)
        with b.loop(begin, end) as major:
            mark = _mark(b, major)
            count = b.variable("i64", "0")
            first, stop = left.bounds(major)
            with b.loop(first, stop) as entry:
                _ask(b, left, right, entry, False)
                first_other, stop_other = right.bounds(left.minor(entry))
                with b.loop(first_other, stop_other) as other:
                    place = b.let(f"getelementptr i32, ptr {marks}, i64 {right.minor(other)}")
                    is_new = b.let(f"icmp ne i32 {b.let(f'load i32, ptr {place}')}, {mark}")
                    b.do(f"store i32 {mark}, ptr {place}")
                    added = b.let(f"zext i1 {is_new} to i64")
                    b.set(count, "i64", b.integer("add", b.get(count, "i64"), added))
            target = b.let(f"getelementptr i64, ptr {counts}, i64 {major}")
            b.do(f"store i64 {b.get(count, 'i64')}, ptr {target}")
        left.check()
        right.check()

    return loop_code(write, 10, vectorize=False)


@functools.cache
def fill_code(dtype: DType, index: DType) -> Code:
    """Write the columns, in order, and the values of the entries of the product, a loop over parts of the rows.

    operands: columns, faults, pointers, minors and values of both matrices, values, pointers of the product (int64), bounds, room.
    meta: that of `count_code`, and the numbers of words of the levels of a set of columns.
    The products of an element are rounded, and then added in the order of the entries of the left matrix.
    """

    def write(b: Body) -> None:
        left, right = (Matrix(b, dtype, index, 1, number) for number in range(2))
        (minors,), (values, pointers, bounds, rooms) = b.operands(0, 1), b.operands(8, 12)
        columns = _Columns(b, _own_room(b, rooms), b.meta(7, 7 + LEVELS))
        begin, end = part_of(b, bounds)
        with b.loop(begin, end) as major:
            first, stop = left.bounds(major)
            with b.loop(first, stop) as entry:
                _ask(b, left, right, entry, True)
                factor = left.value(entry)
                first_other, stop_other = right.bounds(left.minor(entry))
                with b.loop(first_other, stop_other) as other:
                    column = right.minor(other)
                    is_new = columns.add(column)
                    _add(b, dtype, columns.sums, column, _times(b, dtype, factor, right.value(other)), is_new)
            start = b.let(f"load i64, ptr {b.let(f'getelementptr i64, ptr {pointers}, i64 {major}')}")
            behind = b.integer("add", major, 1)
            limit = b.let(f"load i64, ptr {b.let(f'getelementptr i64, ptr {pointers}, i64 {behind}')}")
            columns.take(start, limit, dtype, index, minors, values)
        left.check()
        right.check()

    return loop_code(write, 12, vectorize=False)


@functools.cache
def sampled_pairs_code(dtype: DType, index: DType) -> Code:
    """Write result [entries] = at each entry of a pattern, the dot product of a row of left and a column of right.

    operands: result, faults, pointers, minors and values (of the pattern not read) of pattern, left and right, bounds, room for marks,
    room for values. meta: majors, minors and entries of the three, the bytes of both rooms of a part.
    The terms of a sum are those that both rows have, rounded, in the order of the row of right.
    """

    def write(b: Body) -> None:
        pattern, left, right = (Matrix(b, dtype, index, 1, number) for number in range(3))
        (result,), (bounds, mark_rooms, value_rooms) = b.operands(0, 1), b.operands(11, 14)
        marks, row = _own_room(b, mark_rooms, 9), _own_room(b, value_rooms, 10)
        begin, end = part_of(b, bounds)
        kinds = [value_type(dtype.part or dtype)] * (2 if dtype.is_complex else 1)
        with b.loop(begin, end) as major:
            mark = _mark(b, major)
            first, stop = left.bounds(major)
            with b.loop(first, stop) as entry:
                column = left.minor(entry)
                place = b.let(f"getelementptr i32, ptr {marks}, i64 {column}")
                is_new = b.let(f"icmp ne i32 {b.let(f'load i32, ptr {place}')}, {mark}")
                b.do(f"store i32 {mark}, ptr {place}")
                _add(b, dtype, row, column, left.value(entry), is_new)
            first, stop = pattern.bounds(major)
            with b.loop(first, stop) as entry:
                _ask(b, pattern, right, entry, True)
                totals = [b.variable(kind, "0.0") for kind in kinds]
                first_other, stop_other = right.bounds(pattern.minor(entry))
                with b.loop(first_other, stop_other) as other:
                    column = right.minor(other)
                    place = b.let(f"getelementptr i32, ptr {marks}, i64 {column}")
                    with b.when(b.let(f"icmp eq i32 {b.let(f'load i32, ptr {place}')}, {mark}")):
                        x = numbers(b, dtype, row, column)
                        for total, kind, term in zip(
                            totals, kinds, _times(b, dtype, x, right.value(other)), strict=True
                        ):
                            b.set(total, kind, b.let(f"fadd {kind} {b.get(total, kind)}, {term}"))
                _store(b, dtype, result, entry, [b.get(total, kind) for total, kind in zip(totals, kinds)])
        for matrix in (pattern, left, right):
            matrix.check()

    return loop_code(write, 14, vectorize=False)


class _Columns:
    """A set of columns, see `LEVELS`, and a sum for each of them."""

    def __init__(self, b: Body, room: str, sizes: Sequence[str]):
        self.b, self.sizes, self.levels = b, sizes, [room]
        for size in sizes:
            self.levels.append(b.place(self.levels[-1], (size, 8)))
        self.sums = self.levels.pop()

    def add(self, column: str) -> str:
        """Add a column to the set, and whether it was not there, an i1."""
        b = self.b
        word, bits, bit = self._set(0, column)
        is_new = b.let(f"icmp eq i64 {b.integer('and', bits, bit)}, 0")
        with b.when(b.let(f"icmp eq i64 {bits}, 0")):
            for level in range(1, LEVELS):
                word, _, _ = self._set(level, word)
        return is_new

    def _set(self, level: int, place: str) -> tuple[str, str, str]:
        """Set a bit: the number of its word, the bits that the word had, and the bit."""
        b = self.b
        word = b.integer("lshr", place, 6)
        bit = b.integer("shl", 1, b.integer("and", place, 63))
        address = self._address(level, word)
        bits = b.let(f"load i64, ptr {address}")
        b.do(f"store i64 {b.integer('or', bits, bit)}, ptr {address}")
        return word, bits, bit

    def _address(self, level: int, word: str) -> str:
        return self.b.let(f"getelementptr i64, ptr {self.levels[level]}, i64 {word}")

    def take(self, start: str, limit: str, dtype: DType, index: DType, minors: str, values: str) -> None:
        """Write the columns and their sums from `start` on, before `limit`, and empty the set."""
        b = self.b
        place, kind = b.variable("i64", start), f"i{8 * index.itemsize}"

        def visit(level: int, word: str) -> None:
            address = self._address(level, word)
            bits = b.variable("i64", b.let(f"load i64, ptr {address}"))
            b.do(f"store i64 0, ptr {address}")
            for name in ("ctpop.i64(i64)", "cttz.i64(i64, i1)"):
                b.declarations.add(f"declare i64 @llvm.{name}")
            count = b.let(f"call i64 @llvm.ctpop.i64(i64 {b.get(bits, 'i64')})")
            if not level:
                # The first kernel counted them, but another thread may have changed the indices since.
                count = b.minimum(count, b.integer("sub", limit, b.get(place, "i64")))
            with b.loop(0, count):
                left = b.get(bits, "i64")
                lowest = b.let(f"call i64 @llvm.cttz.i64(i64 {left}, i1 false)")
                b.set(bits, "i64", b.integer("and", left, b.integer("sub", left, 1)))
                found = b.integer("add", b.integer("shl", word, 6), lowest)
                if level:
                    visit(level - 1, found)
                else:
                    at = b.get(place, "i64")
                    stored = found if kind == "i64" else b.let(f"trunc i64 {found} to {kind}")
                    minor = b.let(f"getelementptr {kind}, ptr {minors}, i64 {at}")
                    b.do(f"store {kind} {stored}, ptr {minor}")
                    _store(b, dtype, values, at, numbers(b, dtype, self.sums, found))
                    b.set(place, "i64", b.integer("add", at, 1))

        with b.loop(0, self.sizes[-1]) as word:
            visit(LEVELS - 1, word)


def _ask(b: Body, left: Matrix, right: Matrix, entry: str, with_values: bool) -> None:
    """Ask for the row of `right` that a later entry of `left` will need, and for the pointer to a row that is needed later still."""
    last = b.integer("sub", left.entries, 1)
    pointer = left.index.itemsize
    far, near = (
        b.minimum(left.raw_minor(b.minimum(b.integer("add", entry, ahead), last)), left.last_minor)
        for ahead in (2 * AHEAD, AHEAD)
    )
    begin = right.pointer(b.maximum(near, 0))
    minors = b.place(right.minors, (begin, pointer))
    asked = [b.place(right.pointers, (far, pointer)), minors, b.at(minors, 64)]
    if with_values:
        asked.append(b.place(right.values, (begin, right.dtype.itemsize)))
    for address in asked:
        prefetch(b, address)


def _own_room(b: Body, rooms: str, word: int = 6) -> str:
    (size,) = b.meta(word, word + 1)
    return b.place(rooms, ("%begin", size))


def _mark(b: Body, major: str) -> str:
    """What a row writes to the columns that it has met, an i32; there are fewer than 2**31 rows."""
    return b.let(f"trunc i64 {b.integer('add', major, 1)} to i32")


def _store(b: Body, dtype: DType, base: str, i: str, parts: Sequence[str]) -> None:
    real = dtype.part or dtype
    address = b.place(base, (i, dtype.itemsize))
    for k, part in enumerate(parts):
        b.do(f"store {value_type(real)} {part}, ptr {b.at(address, k * real.itemsize)}")


def _times(b: Body, dtype: DType, x: Sequence[str], y: Sequence[str]) -> list[str]:
    """Return the product of two numbers, given by their parts."""
    real = value_type(dtype.part or dtype)

    def operate(operation: str, left: str, right: str) -> str:
        return b.let(f"{operation} {real} {left}, {right}")

    products = [[operate("fmul", p, q) for q in y] for p in x]
    if not dtype.is_complex:
        return products[0]
    return [operate("fsub", products[0][0], products[1][1]), operate("fadd", products[0][1], products[1][0])]


def _add(b: Body, dtype: DType, base: str, i: str, terms: Sequence[str], is_first: str) -> None:
    """Add the parts of a number to number i of an array, or store them there if it is the first one."""
    real, found = value_type(dtype.part or dtype), []
    for total, term in zip(numbers(b, dtype, base, i), terms, strict=True):
        summed = b.let(f"fadd {real} {total}, {term}")
        found.append(b.let(f"select i1 {is_first}, {real} {term}, {real} {summed}"))
    _store(b, dtype, base, i, found)
