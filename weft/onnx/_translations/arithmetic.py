"""Arithmetic with tensors, and with sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import float32, int64
from ...core.tensor import Tensor
from .._builder import Builder
from .base import translate_rows, translates


def result_dtype(b: Builder) -> Any:
    """The dtype of a result. Sizes are int64, and floats that are computed from them float32."""
    known = b.result()
    return known.dtype if isinstance(known, Tensor) else float32 if isinstance(known, float) else int64


def _binary(kind: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, other: Any, **_: Any) -> str:
        dtype = result_dtype(b)
        return b.op(kind, b.tensor(input, dtype), b.tensor(other, dtype))

    return translation


for _kind, _names in {
    "Mul": "mul multiply __mul__ __rmul__ mul_ __imul__ imul",
    "Pow": "pow __pow__ float_power pow_",
    "Max": "maximum fmax",
    "Min": "minimum fmin",
}.items():
    translates(*_names.split())(_binary(_kind))


@translates("add", "add_", "__add__", "__radd__", "iadd", "__iadd__")
def add(b: Builder, input: Any, other: Any, *, alpha: Any = 1) -> str:
    return _scaled(b, "Add", input, other, alpha)


@translates("sub", "sub_", "subtract", "__sub__", "isub", "__isub__")
def sub(b: Builder, input: Any, other: Any, *, alpha: Any = 1) -> str:
    return _scaled(b, "Sub", input, other, alpha)


translate_rows(
    {
        "rsub __rsub__": lambda b, input, other, *, alpha=1: _scaled(b, "Sub", other, input, alpha),
        "reciprocal_div __rtruediv__ rtruediv": lambda b, input, other: div(b, other, input),
    }
)


def _scaled(b: Builder, kind: str, input: Any, other: Any, alpha: Any) -> str:
    dtype = result_dtype(b)
    second = b.tensor(other, dtype)
    if alpha != 1:
        second = b.op("Mul", second, b.constant(alpha, dtype))
    return b.op(kind, b.tensor(input, dtype), second)


@translates("div", "div_", "divide", "true_divide", "truediv", "__truediv__", "itruediv", "__itruediv__")
def div(b: Builder, input: Any, other: Any, *, rounding_mode: str | None = None) -> str:
    dtype = result_dtype(b)
    if rounding_mode == "floor":
        return floor_divide(b, input, other)
    quotient = b.op("Div", b.tensor(input, dtype), b.tensor(other, dtype))
    if rounding_mode is None or not dtype.is_floating_point:
        return quotient  # ONNX divides integers towards zero
    return b.op("Mul", b.op("Sign", quotient), b.op("Floor", b.op("Abs", quotient)))


@translates("floor_divide", "floordiv", "__floordiv__")
def floor_divide(b: Builder, input: Any, other: Any) -> str:
    dtype = result_dtype(b)
    first, second = b.tensor(input, dtype), b.tensor(other, dtype)
    if dtype.is_floating_point:
        return b.op("Floor", b.op("Div", first, second))
    # ONNX divides integers towards zero: subtract the remainder first, whose sign is that of the divisor.
    return b.op("Div", b.op("Sub", first, b.op("Mod", first, second)), second)


@translates("remainder", "mod", "__mod__")
def remainder(b: Builder, input: Any, other: Any) -> str:
    dtype = result_dtype(b)
    first, second = b.tensor(input, dtype), b.tensor(other, dtype)
    if not dtype.is_floating_point:
        return b.op("Mod", first, second)
    return b.op("Sub", first, b.op("Mul", b.op("Floor", b.op("Div", first, second)), second))


@translates("fmod")
def fmod(b: Builder, input: Any, other: Any) -> str:
    dtype = b.result().dtype
    return b.op("Mod", b.tensor(input, dtype), b.tensor(other, dtype), fmod=1)


@translates("addcmul")
def addcmul(b: Builder, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> str:
    dtype = b.result().dtype
    product = b.op(
        "Mul", b.op("Mul", b.tensor(tensor1, dtype), b.tensor(tensor2, dtype)), b.constant(value, dtype)
    )
    return b.op("Add", b.tensor(input, dtype), product)


@translates("lerp")
def lerp(b: Builder, input: Any, end: Any, weight: Any) -> str:
    dtype = b.result().dtype
    first = b.tensor(input, dtype)
    return b.op("Add", first, b.op("Mul", b.tensor(weight, dtype), b.op("Sub", b.tensor(end, dtype), first)))
