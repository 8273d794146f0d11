"""Computes the product of a compressed sparse matrix and a vector, as LLVM IR."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from ..core.dtype import DType
from .kernel import Code, loop_code
from .llvm import suffix, value_type
from .sparse_products import Matrix, part_of, sum_of_lanes
from .structured import Body
from .vectors import broadcast, lanes_below, load_lanes

LANES = 8  # terms of a row that are added up side by side
# The numbers of the vector that the entries of a group of rows need are collected first, whatever rows the entries belong to, unless the
# rows are long. Measured on AMD Zen 3, one thread, 10^6 entries in rows of 10: 2.3 ms, and 3.4 if each row collects its own; in rows of
# random length around 10, whose ends the processor mispredicts, 3.2 and 3.5.
GROUP = 16  # rows
LONG_ROW = 32  # entries


@functools.cache
def vector_code(dtype: DType, index: DType) -> Code:
    """result [majors] = matrix @ vector [minors]: operands and meta of `rows_code`, whose width is not read.

    Each of eight lanes adds up every eighth term of a row, fused with its product; then the lanes are added in pairs. A vector holds
    eight numbers of any dtype, so that the order of the sum does not depend on it.
    """

    def write(b: Body) -> None:
        rows = _Rows(b, dtype, index)
        begin, end = part_of(b, rows.parts)
        with b.loop(begin, end, GROUP) as first:
            stop = b.minimum(b.integer("add", first, GROUP), end)
            entries = rows.matrix.bounds(first, stop)
            short = b.let(f"icmp sle i64 {b.integer('sub', entries[1], entries[0])}, {GROUP * LONG_ROW}")
            with b.when(short):
                rows.collect(entries)
                with b.loop(first, stop) as major:
                    rows.sum_collected(major, entries)
            with b.unless(short):
                with b.loop(first, stop) as major:
                    rows.sum_long(major)
        rows.check()

    return loop_code(write, 7, vectorize=False)


class _Rows:
    """The sums of the terms of rows. `numbers` has the parts of the numbers of the vector that a group of rows needs."""

    def __init__(self, b: Body, dtype: DType, index: DType):
        self.b, self.dtype, self.index, self.real = b, dtype, index, dtype.part or dtype
        self.matrix = Matrix(b, dtype, index, 1)
        (self.result,), (self.vector, self.parts) = b.operands(0, 1), b.operands(5, 7)
        self.words = f"<{LANES} x {value_type(index)}>"
        self.greatest = b.variable(self.words, "zeroinitializer")
        self.last = broadcast(b, value_type(index), LANES, _last(b, self.matrix))
        count = 2 if dtype.is_complex else 1
        self.numbers = [b.room(GROUP * LONG_ROW * self.real.itemsize) for _ in range(count)]

    def collect(self, entries: Sequence[str]) -> None:
        """Read the numbers of the vector for these entries, of which there are at most GROUP * LONG_ROW."""
        b, kind = self.b, value_type(self.real, LANES)
        for entry, mask in self._blocks(*entries):
            place = b.integer("mul", b.integer("sub", entry, entries[0]), self.real.itemsize)
            for base, x in zip(self.numbers, self._read(entry, mask), strict=True):
                b.do(f"store {kind} {x}, ptr {b.at(base, place)}, align {self.real.itemsize}")

    def sum_collected(self, major: str, entries: Sequence[str]) -> None:
        """The sum of a row whose numbers were collected. Most rows have at most two blocks, which are added without a branch."""
        b = self.b
        first, stop = self.matrix.bounds(major, within=entries)
        sums = self._new_sums()

        def add(entry: str) -> None:
            mask = lanes_below(b, LANES, b.integer("sub", stop, entry))
            place = b.integer("mul", b.integer("sub", entry, entries[0]), self.real.itemsize)
            x = [load_lanes(b, self.real, LANES, b.at(base, place), mask) for base in self.numbers]
            self._add(sums, x, entry, stop, mask)

        add(first)
        add(b.integer("add", first, LANES))
        with b.loop(b.integer("add", first, 2 * LANES), stop, LANES) as entry:
            add(entry)
        self._store(major, sums)

    def sum_long(self, major: str) -> None:
        """The sum of a row whose numbers were not collected."""
        first, stop = self.matrix.bounds(major)
        sums = self._new_sums()
        for entry, mask in self._blocks(first, stop):
            self._add(sums, self._read(entry, mask), entry, stop, mask)
        self._store(major, sums)

    def check(self) -> None:
        """Set the word of faults if a minor was out of range."""
        b, word = self.b, value_type(self.index)
        name = f"@llvm.vector.reduce.umax.v{LANES}{word}"
        b.declarations.add(f"declare {word} {name}({self.words})")
        most = b.let(f"call {word} {name}({self.words} {b.get(self.greatest, self.words)})")
        self.matrix.note(_wide(b, word, most))
        self.matrix.check()

    def _blocks(self, first: str, stop: str) -> Iterator[tuple[str, str]]:
        """Return the code for whole blocks of entries, without a mask, and then for the last one."""
        b = self.b
        whole = b.integer("add", first, b.integer("and", b.integer("sub", stop, first), -LANES))
        with b.loop(first, whole, LANES) as entry:
            yield entry, ""
        with b.when(b.let(f"icmp slt i64 {whole}, {stop}")):
            yield whole, lanes_below(b, LANES, b.integer("sub", stop, whole))

    def _new_sums(self) -> list[str]:
        return [self.b.variable(value_type(self.real, LANES), "zeroinitializer") for _ in self.numbers]

    def _read(self, entry: str, mask: str) -> list[str]:
        places = self._clamped(entry, mask)
        return [self._gathered(places, part, mask) for part in range(len(self.numbers))]

    def _store(self, major: str, sums: Sequence[str]) -> None:
        b = self.b
        place = b.place(self.result, (major, self.dtype.itemsize))
        for part, total in enumerate(sums):
            summed = sum_of_lanes(b, self.real, LANES, b.get(total, value_type(self.real, LANES)))
            b.do(f"store {value_type(self.real)} {summed}, ptr {b.at(place, part * self.real.itemsize)}")

    def _clamped(self, entry: str, mask: str) -> str:
        """The minors of the entries in the lanes of the mask, the last one in place of those out of range. `greatest`: see `Matrix`."""
        b, kind, name = self.b, self.words, suffix(self.index, LANES)
        address = b.place(self.matrix.minors, (entry, self.index.itemsize))
        minors = load_lanes(b, self.index, LANES, address, mask)
        b.declarations |= {f"declare {kind} @llvm.{each}.{name}({kind}, {kind})" for each in ("umax", "umin")}
        most = b.let(f"call {kind} @llvm.umax.{name}({kind} {minors}, {kind} {b.get(self.greatest, kind)})")
        b.set(self.greatest, kind, most)
        return b.let(f"call {kind} @llvm.umin.{name}({kind} {minors}, {kind} {self.last})")

    def _gathered(self, places: str, part: int, mask: str) -> str:
        """Return the parts of the numbers at some places of the vector: the real parts, or the imaginary ones.

        Loads of single numbers are faster than instructions that gather. Lanes outside of the mask have place 0.
        """
        b, scalar, kind = self.b, value_type(self.real), value_type(self.real, LANES)
        base, word, found = b.at(self.vector, part * self.real.itemsize), value_type(self.index), "poison"
        for lane in range(LANES):
            at = _wide(b, word, b.let(f"extractelement {self.words} {places}, i64 {lane}"))
            if self.dtype.is_complex:
                at = b.integer("shl", at, 1)
            x = b.let(f"load {scalar}, ptr {b.let(f'getelementptr {scalar}, ptr {base}, i64 {at}')}")
            found = b.let(f"insertelement {kind} {found}, {scalar} {x}, i64 {lane}")
        if mask:
            found = b.let(f"select <{LANES} x i1> {mask}, {kind} {found}, {kind} zeroinitializer")
        return found

    def _add(self, sums: Sequence[str], x: Sequence[str], entry: str, stop: str, mask: str) -> None:
        """Add the products of x and the values of the entries in the lanes of the mask."""
        y = _entries(self.b, self.dtype, self.matrix.values, entry, self.b.integer("sub", stop, entry), mask)
        _add_products(self.b, self.real, sums, x, y)


def _wide(b: Body, word: str, value: str) -> str:
    """Return an index as int64."""
    return value if word == "i64" else b.let(f"zext {word} {value} to i64")


def _last(b: Body, matrix: Matrix) -> str:
    """Return the last minor as an index."""
    if matrix.index.itemsize == 8:
        return matrix.last_minor
    return b.let(f"trunc i64 {b.minimum(matrix.last_minor, 2**31 - 1)} to i32")


def _entries(b: Body, dtype: DType, values: str, entry: str, count: str, mask: str) -> list[str]:
    """The values of at most eight neighbouring entries: the real parts, and the imaginary ones if they are complex."""
    address = b.place(values, (entry, dtype.itemsize))
    if not dtype.is_complex:
        return [load_lanes(b, dtype, LANES, address, mask)]
    assert dtype.part is not None
    kind = value_type(dtype.part, 2 * LANES)
    wide = lanes_below(b, 2 * LANES, b.integer("mul", count, 2)) if mask else ""
    pairs = load_lanes(b, dtype.part, 2 * LANES, address, wide)
    orders = [", ".join(f"i32 {2 * k + part}" for k in range(LANES)) for part in range(2)]
    return [
        b.let(f"shufflevector {kind} {pairs}, {kind} poison, <{LANES} x i32> <{order}>") for order in orders
    ]


def _add_products(b: Body, real: DType, sums: Sequence[str], x: Sequence[str], y: Sequence[str]) -> None:
    """Add the products of x and y to the variables `sums`; each of the three has one part, or two for complex numbers."""
    kind = value_type(real, LANES)
    terms = [[(x[0], y[0])]]
    if len(sums) == 2:
        terms = [[(x[0], y[0]), (b.let(f"fneg {kind} {x[1]}"), y[1])], [(x[0], y[1]), (x[1], y[0])]]
    for total, products in zip(sums, terms, strict=True):
        for left, right in products:
            b.set(total, kind, b.intrinsic("fma", real, LANES, left, right, b.get(total, kind)))
