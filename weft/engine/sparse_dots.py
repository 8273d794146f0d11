"""The product of a compressed sparse matrix and a vector, as LLVM IR."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..core.dtype import DType
from .kernel import Code
from .llvm import value_type
from .sparse_products import Matrix, code, numbers, operands, part_of, sum_of_lanes
from .structured import Body

LANES = 8  # terms of a long row that are added up side by side
# Entries: the terms of shorter rows are added one after the other, because the lanes of a vector would stay empty. Measured on
# AMD Zen 4, one thread: 10^6 entries in rows of 10 take 1.0 ms so, and 1.7 ms in lanes that a mask switches off.
LONG_ROW = 32


@functools.cache
def vector_code(dtype: DType, index: DType) -> Code:
    """result [majors] = matrix @ vector [minors]: operands and meta of `rows_code`, whose width is not read.

    Terms are fused with their products. Of a long row each of eight lanes adds up every eighth term, then the lanes are added in
    pairs, and the last terms, fewer than eight, follow one after the other. A vector holds eight numbers of any dtype, so that the order
    of the sum does not depend on it.
    """

    def write(b: Body) -> None:
        matrix, real = Matrix(b, dtype, index, 1), dtype.part or dtype
        kind, vector_kind = value_type(real), value_type(real, LANES)
        (result,), (vector, bounds) = operands(b, 0, 1), operands(b, 5, 7)
        begin, end = part_of(b, bounds)
        parts = 2 if dtype.is_complex else 1
        with b.loop(begin, end) as major:
            first, stop = matrix.bounds(major)
            totals = [b.variable(kind, "0.0") for _ in range(parts)]
            rest = b.variable("i64", first)
            count = b.integer("sub", stop, first)
            with b.when(b.let(f"icmp sge i64 {count}, {LONG_ROW}")):
                sums = [b.variable(vector_kind, "zeroinitializer") for _ in range(parts)]
                whole = b.integer("add", first, b.integer("and", count, -LANES))
                with b.loop(first, whole, LANES) as entry, matrix.when_valid(entry, LANES) as places:
                    x = [_gathered(b, dtype, vector, places, part) for part in range(parts)]
                    _add_products(b, real, LANES, sums, x, _entries(b, dtype, matrix.values, entry))
                for total, each in zip(totals, sums, strict=True):
                    b.set(total, kind, sum_of_lanes(b, real, LANES, b.get(each, vector_kind)))
                b.set(rest, "i64", whole)
            with b.loop(b.get(rest, "i64"), stop) as entry:
                x = numbers(b, dtype, vector, matrix.minor(entry))
                _add_products(b, real, 1, totals, x, matrix.value(entry))
            place = b.at(result, b.integer("mul", major, dtype.itemsize))
            for part, total in enumerate(totals):
                b.do(f"store {kind} {b.get(total, kind)}, ptr {b.at(place, part * real.itemsize)}")
        matrix.check()

    return code(7, write)


def _gathered(b: Body, dtype: DType, vector: str, places: Sequence[str], part: int) -> str:
    """The parts of the numbers at eight places of a vector: the real parts, or the imaginary ones.

    Eight loads are faster than one gather: 0.49 ms instead of 0.66 for 10^6 entries in rows of 100 (AMD Zen 4, one thread).
    """
    real = dtype.part or dtype
    kind, scalar, found = value_type(real, LANES), value_type(real), "poison"
    base = b.at(vector, part * real.itemsize)
    for lane, place in enumerate(places):
        x = b.let(f"load {scalar}, ptr {b.at(base, b.integer('mul', place, dtype.itemsize))}")
        found = b.let(f"insertelement {kind} {found}, {scalar} {x}, i64 {lane}")
    return found


def _entries(b: Body, dtype: DType, values: str, entry: str) -> list[str]:
    """The values of eight neighbouring entries: the real parts, and the imaginary ones if they are complex."""
    address = b.at(values, b.integer("mul", entry, dtype.itemsize))
    if not dtype.is_complex:
        return [_loaded(b, dtype, LANES, address)]
    assert dtype.part is not None
    kind = value_type(dtype.part, 2 * LANES)
    pairs = _loaded(b, dtype.part, 2 * LANES, address)
    orders = [", ".join(f"i32 {2 * k + part}" for k in range(LANES)) for part in range(2)]
    return [
        b.let(f"shufflevector {kind} {pairs}, {kind} poison, <{LANES} x i32> <{order}>") for order in orders
    ]


def _loaded(b: Body, dtype: DType, lanes: int, address: str) -> str:
    return b.let(f"load {value_type(dtype, lanes)}, ptr {address}, align {dtype.itemsize}")


def _add_products(
    b: Body, real: DType, lanes: int, sums: Sequence[str], x: Sequence[str], y: Sequence[str]
) -> None:
    """Add the products of x and y to the variables `sums`; each of the three has one part, or two for complex numbers."""
    kind = value_type(real, lanes)
    terms = [[(x[0], y[0])]]
    if len(sums) == 2:
        terms = [[(x[0], y[0]), (b.let(f"fneg {kind} {x[1]}"), y[1])], [(x[0], y[1]), (x[1], y[0])]]
    for total, products in zip(sums, terms, strict=True):
        for left, right in products:
            b.set(total, kind, b.intrinsic("fma", real, lanes, left, right, b.get(total, kind)))
