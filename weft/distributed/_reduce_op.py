"""ReduceOp: how collectives combine the values of the ranks."""

from __future__ import annotations

from enum import Enum
from typing import Any


class RedOpType(Enum):
    """The kinds of reductions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __int__(self) -> int:
        return self.value

    __index__ = __int__
    __hash__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RedOpType):
            return self is other
        return self.value == other if isinstance(other, int) else NotImplemented


class _ReduceOpMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, RedOpType)


class ReduceOp(metaclass=_ReduceOpMeta):
    """A reduction. Collectives take the kinds (`ReduceOp.SUM`) as they are.

    >>> from weft.distributed import ReduceOp
    >>> ReduceOp.SUM, isinstance(ReduceOp.SUM, ReduceOp), ReduceOp(ReduceOp.SUM) == ReduceOp.SUM
    (<RedOpType.SUM: 0>, True, True)
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any, factor: Any = None) -> None:
        self.op = RedOpType(getattr(op, "op", op))
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return self.op is getattr(other, "op", other) if isinstance(other, ReduceOp) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.op)


RedOpType.__qualname__ = "ReduceOp.RedOpType"
