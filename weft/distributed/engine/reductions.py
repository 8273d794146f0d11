"""How an engine combines numbers: by the loops of weft's own kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from ...core.dtype import DType
from ...core.spec import contiguous_spec
from ...ops.elementwise.arithmetic import ADD, MUL
from ...ops.elementwise.pointwise import OPS
from .._reduce_op import RedOpType
from .steps import Steps, Word

_OPS = {
    RedOpType.SUM: ADD,
    RedOpType.PRODUCT: MUL,
    RedOpType.MIN: OPS["minimum"],
    RedOpType.MAX: OPS["maximum"],
    RedOpType.BAND: OPS["bitwise_and"],
    RedOpType.BOR: OPS["bitwise_or"],
    RedOpType.BXOR: OPS["bitwise_xor"],
}


class Loop(NamedTuple):
    """The loop of a kernel with one result and two operands."""

    address: int
    meta: int
    row: int


@functools.cache
def loop(op: RedOpType, dtype: DType) -> Loop:
    """The loop over contiguous operands, whose number of elements is an argument.

    Raises: RuntimeError if there is no such reduction.
    """
    spec = contiguous_spec((64,), dtype)
    stage = _OPS[op].plans[spec, spec].keepalive
    return Loop(stage.loop, stage.meta.address, stage.row)


def fold(steps: Steps, combine: Loop, out: Word, operands: Sequence[int], count: int) -> None:
    """Combine `count` elements at each of at least two addresses, from the first to the last."""
    left: Word = operands[0]
    for right in operands[1:]:
        steps.apply(combine.address, combine.meta, count, combine.row, out, left, right)
        left = out
