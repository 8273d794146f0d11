"""Non-maximum suppression, as LLVM IR: of several boxes that overlap, the first is kept."""

from __future__ import annotations

import functools

from ..core.dtype import DType, float64
from .kernel import Code, loop_code
from .structured import Body


@functools.cache
def suppression_code(dtype: DType) -> Code:
    """Call `entry(suppressed, boxes, threshold, meta, 1)`.

    boxes: [5, n], rows x1, y1, x2, y2 and area. suppressed: bytes [n], zero before the call; set to 1 for each box whose
    intersection over union with an earlier box that stays is above the threshold, an address of one number. meta: n.
    """
    kind = "double" if dtype is float64 else "float"
    return loop_code(lambda body: _write(body, dtype, kind), 3)


def _write(b: Body, dtype: DType, kind: str) -> None:
    nbytes = dtype.itemsize
    suppressed, boxes, limit = b.operands(3)
    n = b.let("load i64, ptr %meta")
    threshold = b.let(f"load {kind}, ptr {limit}")
    pitch = b.integer("mul", n, nbytes)
    rows = [b.place(boxes, (pitch, k)) for k in range(5)]

    def box(i: str) -> list[str]:
        offset = b.integer("mul", i, nbytes)
        return [b.let(f"load {kind}, ptr {b.at(row, offset)}, align {nbytes}") for row in rows]

    def greater(x: str, y: str) -> str:
        return b.let(f"select i1 {b.let(f'fcmp olt {kind} {x}, {y}')}, {kind} {y}, {kind} {x}")

    def less(x: str, y: str) -> str:
        return b.let(f"select i1 {b.let(f'fcmp olt {kind} {y}, {x}')}, {kind} {y}, {kind} {x}")

    def length(low: str, high: str) -> str:
        return greater("0.0", b.let(f"fsub {kind} {high}, {low}"))

    with b.loop(0, n) as i:
        gone = b.let(f"load i8, ptr {b.at(suppressed, i)}")
        with b.when(b.let(f"icmp eq i8 {gone}, 0")):
            x1, y1, x2, y2, area = box(i)
            with b.loop(b.integer("add", i, 1), n) as j:
                u1, v1, u2, v2, other = box(j)
                width = length(greater(x1, u1), less(x2, u2))
                height = length(greater(y1, v1), less(y2, v2))
                both = b.let(f"fmul {kind} {width}, {height}")
                union = b.let(f"fsub {kind} {b.let(f'fadd {kind} {area}, {other}')}, {both}")
                overlap = b.let(f"fdiv {kind} {both}, {union}")
                above = b.let(f"zext i1 {b.let(f'fcmp ogt {kind} {overlap}, {threshold}')} to i8")
                place = b.at(suppressed, j)
                before = b.let(f"load i8, ptr {place}")
                b.do(f"store i8 {b.let(f'or i8 {before}, {above}')}, ptr {place}")
