"""Comparison, logic and choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import bool_, int32
from .._builder import Builder
from .base import translate_rows, translates


def _comparison(kind: str, negated: bool = False) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, other: Any) -> str:
        dtype = _common_dtype(input, other, b)
        found = b.op(kind, b.tensor(input, dtype), b.tensor(other, dtype))
        return b.op("Not", found) if negated else found

    return translation


def _common_dtype(first: Any, second: Any, b: Builder) -> Any:
    from ... import result_type

    return result_type(b.meta(first), b.meta(second))


for _kind, _names in {
    "Equal": "eq __eq__",
    "Greater": "gt greater __gt__",
    "Less": "lt less __lt__",
    "GreaterOrEqual": "ge greater_equal __ge__",
    "LessOrEqual": "le less_equal __le__",
}.items():
    translates(*_names.split())(_comparison(_kind))


translates("ne", "not_equal", "__ne__")(_comparison("Equal", negated=True))


def _logical(kind: str, bits: str | None = None) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, other: Any) -> str:
        dtype = b.result().dtype
        if bits is not None and dtype != bool_:
            return b.op(bits, b.tensor(input, dtype), b.tensor(other, dtype))
        return b.op(kind, b.tensor(input, bool_), b.tensor(other, bool_))

    return translation


translates("logical_and")(_logical("And"))
translates("logical_or")(_logical("Or"))
translates("logical_xor")(_logical("Xor"))
translates("and_", "bitwise_and", "__and__")(_logical("And", "BitwiseAnd"))
translates("or_", "bitwise_or", "__or__")(_logical("Or", "BitwiseOr"))
translates("xor", "bitwise_xor", "__xor__")(_logical("Xor", "BitwiseXor"))


@translates("logical_not", "bitwise_not", "invert", "__invert__")
def logical_not(b: Builder, input: Any) -> str:
    if b.result().dtype != bool_:
        return b.op("BitwiseNot", b.tensor(input))
    return b.op("Not", b.tensor(input, bool_))


translate_rows(
    {
        "isnan": lambda b, input: b.op("IsNaN", b.tensor(input)),
        "isinf": lambda b, input: b.op("IsInf", b.tensor(input)),
    }
)


@translates("where")
def where(b: Builder, condition: Any, input: Any, other: Any) -> str:
    dtype = b.result().dtype
    return b.op("Where", b.tensor(condition, bool_), b.tensor(input, dtype), b.tensor(other, dtype))


@translates("masked_fill", "masked_fill_")
def masked_fill(b: Builder, input: Any, mask: Any, value: Any) -> str:
    dtype = b.result().dtype
    return b.op("Where", b.tensor(mask, bool_), b.tensor(value, dtype), b.tensor(input, dtype))


@translates("isfinite")
def isfinite(b: Builder, input: Any) -> str:
    value = b.tensor(input)
    if not b.meta(input).dtype.is_floating_point:
        return b.op("Equal", value, value)
    return b.op("Not", b.op("Or", b.op("IsNaN", value), b.op("IsInf", value)))


@translates("isin")
def isin(b: Builder, elements: Any, test_elements: Any, *, invert: bool = False, **_: Any) -> str:
    dtype = _common_dtype(elements, test_elements, b)
    each = b.op("Unsqueeze", b.tensor(elements, dtype), b.axes(-1))
    equal = b.op("Equal", each, b.reshape(b.tensor(test_elements, dtype), [-1]))
    found = b.cast(b.op("ReduceMax", b.cast(equal, int32), b.axes(-1), keepdims=0), bool_)
    return b.op("Not", found) if invert else found


@translates("heaviside")
def heaviside(b: Builder, input: Any, values: Any) -> str:
    dtype = b.result().dtype
    value = b.tensor(input, dtype)
    positive = b.cast(b.op("Greater", value, b.constant(0, dtype)), dtype)
    return b.op("Where", b.op("Equal", value, b.constant(0, dtype)), b.tensor(values, dtype), positive)
