"""The product of a compressed sparse matrix and a vector, as LLVM IR."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..core.dtype import DType
from .kernel import Code
from .llvm import suffix, value_type
from .sparse_products import Matrix, code, operands, part_of, sum_of_lanes
from .structured import Body
from .vectors import broadcast, has_masks, lanes_below, masked_load

LANES = 8  # terms of a row that are added up side by side
# Entries: in rows with as many, loading the elements of the vector one by one is faster than gathering them; in shorter ones a second
# loop costs more than that. Measured on AMD Zen 4: 10^6 entries in rows of 100 take 0.49 ms of one thread (0.66 if gathered), in rows of
# 10 they take 1.1 ms gathered (1.8). Computing all products first, whatever rows they belong to, gained nothing. Adding up the terms of
# short rows without lanes takes 1.7 ms instead of 1.4 if rows have random lengths around 10, because the processor mispredicts where each
# row ends; if all have 10, it takes 1.0 ms.
LONG_ROW = 32


@functools.cache
def vector_code(dtype: DType, index: DType) -> Code:
    """result [majors] = matrix @ vector [minors]: operands and meta of `rows_code`, whose width is not read.

    Each of eight lanes adds up every eighth term of a row, fused with its product; then the lanes are added in pairs. A vector holds
    eight numbers of any dtype, so that the order of the sum does not depend on it.
    """

    def write(b: Body) -> None:
        matrix, real = Matrix(b, dtype, index, 1), dtype.part or dtype
        kind, vector_kind = value_type(real), value_type(real, LANES)
        (result,), (vector, bounds) = operands(b, 0, 1), operands(b, 5, 7)
        begin, end = part_of(b, bounds)
        parts = 2 if dtype.is_complex else 1
        word = value_type(index)
        greatest = b.variable(f"<{LANES} x {word}>", "zeroinitializer")
        last = broadcast(b, word, LANES, _last(b, matrix))
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            sums = [b.variable(vector_kind, "zeroinitializer") for _ in range(parts)]
            count = b.integer("sub", stop, first)
            unmasked = b.let(f"select i1 {b.let(f'icmp sge i64 {count}, {LONG_ROW}')}, i64 {count}, i64 0")
            whole = b.integer("add", first, b.integer("and", unmasked, -LANES))

            def add(entry: str, mask: str) -> None:
                places = _clamped(b, matrix, entry, mask, last, greatest)
                x = [_gathered(b, dtype, index, vector, places, part, mask) for part in range(parts)]
                y = _entries(b, dtype, matrix.values, entry, b.integer("sub", stop, entry), mask)
                _add_products(b, real, sums, x, y)

            with b.loop(first, whole, LANES) as entry:
                add(entry, "")
            with b.loop(whole, stop, LANES) as entry:
                add(entry, lanes_below(b, LANES, b.integer("sub", stop, entry)))
            place = b.at(result, b.integer("mul", major, dtype.itemsize))
            for part, total in enumerate(sums):
                summed = sum_of_lanes(b, real, LANES, b.get(total, vector_kind))
                b.do(f"store {kind} {summed}, ptr {b.at(place, part * real.itemsize)}")
        kind, name = f"<{LANES} x {word}>", f"@llvm.vector.reduce.umax.v{LANES}{word}"
        b.declarations.add(f"declare {word} {name}({kind})")
        most = b.let(f"call {word} {name}({kind} {b.get(greatest, kind)})")
        matrix.note(_wide(b, word, most))
        matrix.check()

    return code(7, write)


def _wide(b: Body, word: str, value: str) -> str:
    """An index as int64."""
    return value if word == "i64" else b.let(f"zext {word} {value} to i64")


def _last(b: Body, matrix: Matrix) -> str:
    """The last minor as an index."""
    if matrix.index.itemsize == 8:
        return matrix.last_minor
    return b.let(f"trunc i64 {b.minimum(matrix.last_minor, 2**31 - 1)} to i32")


def _clamped(b: Body, matrix: Matrix, entry: str, mask: str, last: str, greatest: str) -> str:
    """The minors of the entries in the lanes of the mask, the last one in place of those out of range. `greatest`: see `Matrix`."""
    kind, name = value_type(matrix.index, LANES), suffix(matrix.index, LANES)
    address = b.at(matrix.minors, b.integer("mul", entry, matrix.index.itemsize))
    minors = _loaded(b, matrix.index, LANES, address, mask)
    b.declarations |= {f"declare {kind} @llvm.{each}.{name}({kind}, {kind})" for each in ("umax", "umin")}
    most = b.let(f"call {kind} @llvm.umax.{name}({kind} {minors}, {kind} {b.get(greatest, kind)})")
    b.set(greatest, kind, most)
    return b.let(f"call {kind} @llvm.umin.{name}({kind} {minors}, {kind} {last})")


def _gathered(b: Body, dtype: DType, index: DType, vector: str, places: str, part: int, mask: str) -> str:
    """The parts of the numbers at some places of a vector: the real parts, or the imaginary ones.

    Without AVX-512, LLVM makes a branch of each lane of a masked gather, so all lanes are loaded: those outside of the mask have place 0.
    """
    real, word = dtype.part or dtype, value_type(index)
    kind, base = value_type(real, LANES), b.at(vector, part * real.itemsize)
    if word != "i64" and (dtype.is_complex or (mask and has_masks())):
        places, word = b.let(f"zext <{LANES} x {word}> {places} to <{LANES} x i64>"), "i64"
    if dtype.is_complex:
        places = b.let(f"shl <{LANES} x i64> {places}, splat (i64 1)")
    if mask and has_masks():
        addresses = b.let(f"getelementptr {value_type(real)}, ptr {base}, <{LANES} x i64> {places}")
        name = f"@llvm.masked.gather.{suffix(real, LANES)}.v{LANES}p0"
        b.declarations.add(f"declare {kind} {name}(<{LANES} x ptr>, i32, <{LANES} x i1>, {kind})")
        return b.let(
            f"call {kind} {name}(<{LANES} x ptr> {addresses}, i32 {real.itemsize}, <{LANES} x i1> {mask}, {kind} zeroinitializer)"
        )
    scalar, found = value_type(real), "poison"
    for lane in range(LANES):
        at = _wide(b, word, b.let(f"extractelement <{LANES} x {word}> {places}, i64 {lane}"))
        x = b.let(f"load {scalar}, ptr {b.let(f'getelementptr {scalar}, ptr {base}, i64 {at}')}")
        found = b.let(f"insertelement {kind} {found}, {scalar} {x}, i64 {lane}")
    if mask:
        found = b.let(f"select <{LANES} x i1> {mask}, {kind} {found}, {kind} zeroinitializer")
    return found


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
