"""Products of a vector and the rows of a matrix, whose elements are neighbours, as LLVM IR: a few dot products side by side.

bfloat16 and float16 are widened in registers, or multiplied by the processor's own instruction (`narrow_gemm.py`), so that nothing is
converted in memory.
"""

from __future__ import annotations

import functools

from ..core.dtype import DType, bfloat16, compute_type, float16, int16
from .convert import convert
from .expr import load
from .kernel import Code, loop_code
from .llvm import emit, value_type
from .panels import HEADER, TASK
from .sliding import LINE, TOTALS
from .structured import Body
from .vectors import add_pairs, lane_sums, lanes_below, load_lanes, store_lanes


@functools.cache
def dots_code(dtype: DType, result: DType, order: str) -> Code:
    """Write `entry` with the meta of `panels.py` for products of one row: `c[n] = the sum over k of a[k] * b[k, n]`.

    The terms of a and of each column of b are neighbours. order: of the operands, "cab" or "cba". result: the dtype of c.
    """
    return loop_code(lambda body: _write(body, dtype, result, order), 3, vectorize=False)


class _Terms:
    """Loads and products of a line of terms. Narrow floats are added up as float32, the products of bfloat16 in pairs."""

    def __init__(self, b: Body, dtype: DType):
        self.b, self.dtype = b, dtype
        self.sums = compute_type(dtype)
        self.lanes = LINE // self.sums.itemsize
        self.at_once = 2 * self.lanes if dtype is bfloat16 else self.lanes
        self.bits = int16 if dtype is bfloat16 else dtype
        self.line = value_type(self.bits, self.at_once)

    def load(self, address: str, inside: str = "") -> str:
        return load_lanes(self.b, self.bits, self.at_once, address, inside)

    def add(self, total: str, x: str, y: str) -> None:
        """Add the products of two lines to the vector in the variable `total`."""
        kind = value_type(self.sums, self.lanes)
        before = self.b.get(total, kind)
        if self.dtype is bfloat16:
            after = add_pairs(self.b, before, x, y, self.line)
        else:
            if self.dtype is float16:
                x, y = (self.b.let(f"fpext {self.line} {each} to {kind}") for each in (x, y))
            after = self.b.intrinsic("fma", self.sums, self.lanes, x, y, before)
        self.b.set(total, kind, after)


def _write(b: Body, dtype: DType, result: DType, order: str) -> None:
    size, line = dtype.itemsize, _Terms(b, dtype)
    vector = value_type(line.sums, line.lanes)
    bases = b.fields("%operands", order, "ptr")
    meta = b.fields("%meta", HEADER)
    whole = b.integer("sub", meta["terms"], b.integer("urem", meta["terms"], line.at_once))
    rest = lanes_below(b, line.at_once, b.integer("sub", meta["terms"], whole))
    with b.loop("%begin", "%end") as i:
        words = b.at("%meta", b.integer("add", b.integer("mul", i, 8 * len(TASK)), 8 * len(HEADER)))
        task = b.fields(words, TASK)
        c, a, right = (b.at(bases[name], task[name]) for name in "cab")
        last = b.integer("sub", task["columns"], 1)
        with b.loop(0, task["columns"], TOTALS) as n:
            columns = []
            for j in range(TOTALS):
                # Where there is no further column, the last one is read again.
                column = b.minimum(b.integer("add", n, j), last)
                columns.append(b.place(right, (column, meta["b_column"])))
            sums = [b.variable(vector, "zeroinitializer") for _ in columns]
            with b.loop(0, whole, line.at_once) as k:
                offset = b.integer("mul", k, size)
                factor = line.load(b.at(a, offset))
                for total, column in zip(sums, columns, strict=True):
                    line.add(total, line.load(b.at(column, offset)), factor)
            with b.when(b.let(f"icmp slt i64 {whole}, {meta['terms']}")):
                offset = b.integer("mul", whole, size)
                factor = line.load(b.at(a, offset), rest)
                for total, column in zip(sums, columns, strict=True):
                    line.add(total, line.load(b.at(column, offset), rest), factor)
            totals = lane_sums(b, line.sums, line.lanes, [b.get(total, vector) for total in sums])
            exact = load(0, line.sums)
            (rounded,) = emit(b, [convert(exact, result)], {exact: totals}, TOTALS)
            inside = lanes_below(b, TOTALS, b.integer("sub", task["columns"], n))
            store_lanes(b, result, TOTALS, rounded, b.place(c, (n, result.itemsize)), inside)
