"""Elementwise arithmetic. A row is the whole definition of an op; how to add one: `docs/adding-an-op.md`."""

from __future__ import annotations

from ..core.dtype import DType, bool_
from ..families.map import Map, keep, publish, to_float


def no_bool(name: str, dtype: DType) -> None:
    if dtype is bool_:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )


ADD = Map("add", keep, lambda a, b: a + b)
MUL = Map("mul", keep, lambda a, b: a * b)
add = publish(ADD, 2, "function method inplace")
mul = publish(MUL, 2, "function method inplace", "multiply")
_rows = to_float
