"""Counts how often integers occur, as LLVM IR."""

from __future__ import annotations

import functools

from ..core.dtype import DType
from .kernel import Code, loop_code
from .structured import Body

# Neighbouring values count in different tables, because a value that occurs twice in a row would wait for its own count.
TABLES = 4


@functools.cache
def count_code(dtype: DType) -> Code:
    """A loop over parts of a vector of integers: operands are the tables, int64, and the values, contiguous.

    meta: the number of values, the number of parts, the least value, how many values from it on are counted, the bytes between the
    tables of neighbouring values, and between those of two parts. A table has one more word, where all other values are counted.
    """
    declarations = {"declare i64 @llvm.umin.i64(i64, i64)"}
    return loop_code(functools.partial(_parts, dtype=dtype), 2, declarations=declarations)


def _parts(b: Body, dtype: DType) -> None:
    tables, values = b.operands(2)
    n, parts, low, span, table, own = b.meta(6)
    with b.loop("%begin", "%end") as part:
        first = b.integer("sdiv", b.integer("mul", n, part), parts)
        stop = b.integer("sdiv", b.integer("mul", n, b.integer("add", part, 1)), parts)
        base = b.place(tables, (part, own))
        whole = b.integer("and", b.integer("sub", stop, first), -TABLES)
        middle = b.integer("add", first, whole)
        with b.loop(first, middle, TABLES) as i:
            for k in range(TABLES):
                position = b.integer("add", i, k)
                _count(b, dtype, b.place(base, (table, k)), values, position, low, span)
        with b.loop(middle, stop) as i:
            _count(b, dtype, base, values, i, low, span)


def _count(b: Body, dtype: DType, table: str, values: str, i: str, low: str, span: str) -> None:
    kind = f"i{8 * dtype.itemsize}"
    value = b.let(f"load {kind}, ptr {b.place(values, (i, dtype.itemsize))}")
    if kind != "i64":
        value = b.let(f"{'sext' if dtype.kind == 'i' else 'zext'} {kind} {value} to i64")
    place = b.let(f"call i64 @llvm.umin.i64(i64 {b.integer('sub', value, low)}, i64 {span})")
    word = b.let(f"getelementptr i64, ptr {table}, i64 {place}")
    b.do(f"store i64 {b.integer('add', b.let(f'load i64, ptr {word}'), 1)}, ptr {word}")
