"""Products of a vector and the rows of a matrix, whose elements are neighbours, as LLVM IR: a few dot products side by side."""

from __future__ import annotations

import functools

from ..core.dtype import DType
from .kernel import Code, compile_loop
from .llvm import value_type
from .panels import HEADER, TASK
from .sliding import LINE, TOTALS
from .structured import Body, function
from .vectors import lane_sums, lanes_below, masked_load, masked_store


@functools.cache
def dots_code(dtype: DType, order: str) -> Code:
    """`entry` with the meta of `panels.py` for products of one row: `c[n] = the sum over k of a[k] * b[k, n]`.

    The terms of a and of each column of b are neighbours. order: of the operands, "cab" or "cba".
    """
    declarations: set[str] = set()
    parameters = "ptr %operands, ptr %meta, i64 %begin, i64 %end"
    text = function("loop", parameters, declarations, lambda body: _write(body, dtype, order))
    return compile_loop("\n".join([*sorted(declarations), text]), 3, "", vectorize=False)


def _write(b: Body, dtype: DType, order: str) -> None:
    size, lanes = dtype.itemsize, LINE // dtype.itemsize
    vector = value_type(dtype, lanes)
    bases = {name: b.let(f"load ptr, ptr {b.at('%operands', 8 * k)}") for k, name in enumerate(order)}
    meta = {name: b.let(f"load i64, ptr {b.at('%meta', 8 * k)}") for k, name in enumerate(HEADER)}
    whole = b.integer("sub", meta["terms"], b.integer("urem", meta["terms"], lanes))
    rest = lanes_below(b, lanes, b.integer("sub", meta["terms"], whole))
    with b.loop("%begin", "%end") as i:
        words = b.at("%meta", b.integer("add", b.integer("mul", i, 8 * len(TASK)), 8 * len(HEADER)))
        task = {name: b.let(f"load i64, ptr {b.at(words, 8 * k)}") for k, name in enumerate(TASK)}
        c, a, right = (b.at(bases[name], task[name]) for name in "cab")
        last = b.integer("sub", task["columns"], 1)
        with b.loop(0, task["columns"], TOTALS) as n:
            columns = []
            for j in range(TOTALS):
                # Where there is no further column, the last one is read again.
                column = b.minimum(b.integer("add", n, j), last)
                columns.append(b.at(right, b.integer("mul", column, meta["b_column"])))
            sums = [b.variable(vector, "zeroinitializer") for _ in columns]
            with b.loop(0, whole, lanes) as k:
                offset = b.integer("mul", k, size)
                factor = b.let(f"load {vector}, ptr {b.at(a, offset)}, align {size}")
                for total, column in zip(sums, columns, strict=True):
                    found = b.let(f"load {vector}, ptr {b.at(column, offset)}, align {size}")
                    b.set(
                        total, vector, b.intrinsic("fma", dtype, lanes, found, factor, b.get(total, vector))
                    )
            with b.when(b.let(f"icmp slt i64 {whole}, {meta['terms']}")):
                offset = b.integer("mul", whole, size)
                factor = masked_load(b, dtype, lanes, b.at(a, offset), rest)
                for total, column in zip(sums, columns, strict=True):
                    found = masked_load(b, dtype, lanes, b.at(column, offset), rest)
                    b.set(
                        total, vector, b.intrinsic("fma", dtype, lanes, found, factor, b.get(total, vector))
                    )
            totals = lane_sums(b, dtype, lanes, [b.get(total, vector) for total in sums])
            inside = lanes_below(b, TOTALS, b.integer("sub", task["columns"], n))
            masked_store(b, dtype, TOTALS, totals, b.at(c, b.integer("mul", n, size)), inside)
