"""Type promotion: the dtype of a computation on operands of several dtypes.

Operands have three priorities: tensors with dimensions, then 0-dim tensors, then Python numbers. A lower priority changes the
dtype only if its category (bool < integer < float < complex) is higher than the categories of the higher priorities.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from . import dtype as dt
from .dtype import (
    COMPLEX,
    FLOAT,
    FLOAT8,
    INTEGER,
    LEGACY_NAMES,
    UNSIGNED_WIDE,
    DType,
    bool_,
    default_complex,
    get_default_dtype,
    int64,
)
from .spec import Spec


@functools.cache
def promote_types(type1: DType, type2: DType) -> DType:
    """The smallest dtype to which both promote.

    Raises: RuntimeError for pairs without such a dtype (uint16, uint32 and uint64 with other integers; float8).

    >>> import weft as torch
    >>> torch.promote_types(torch.int32, torch.float16), torch.promote_types(torch.uint8, torch.int8)
    (torch.float16, torch.int16)
    """
    a, b = check_dtypes("promote_types", type1=type1, type2=type2)
    if a is b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        raise RuntimeError(_unsupported("Float8 Types", a, b))
    if a.category == b.category:
        return _same_category(a, b)
    low, high = sorted((a, b), key=lambda dtype: dtype.category)
    if low in UNSIGNED_WIDE and high.category == COMPLEX or high in UNSIGNED_WIDE:
        raise RuntimeError(_unsupported("uint16, uint32, uint64 types", a, b))
    if high.category == COMPLEX and low.category == FLOAT:
        return _same_category(low.to_complex(), high)
    return high


def _same_category(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if a.category == INTEGER:
        return _integers(a, b)
    if a.itemsize == b.itemsize:  # float16 and bfloat16
        return dt.float32
    return a if a.itemsize > b.itemsize else b


def _integers(a: DType, b: DType) -> DType:
    if a in UNSIGNED_WIDE or b in UNSIGNED_WIDE:
        raise RuntimeError(_unsupported("uint16, uint32, uint64 types", a, b))
    if {a, b} == {dt.uint8, dt.int8}:
        return dt.int16
    return a if a.itemsize > b.itemsize or b is dt.uint8 and a.itemsize == 1 else b


def _unsupported(what: str, a: DType, b: DType) -> str:
    return (
        f"Promotion for {what} is not supported, attempted to promote {LEGACY_NAMES[a]} and {LEGACY_NAMES[b]}"
    )


def number_dtype(kind: type) -> DType:
    """The dtype of a Python number of type `kind`: bool, int64, the default dtype or its complex dtype."""
    if kind is float:
        return get_default_dtype()
    if kind is int:
        return int64
    return bool_ if kind is bool else default_complex()


def common_dtype(operands: Iterable[Any]) -> DType:
    """The dtype in which an op computes. An operand is a Spec or the type of a Python number."""
    dimensioned = zero_dim = number = None
    for operand in operands:
        if not isinstance(operand, Spec):
            number = _join(number, number_dtype(operand))
        elif operand.shape:
            dimensioned = _join(dimensioned, operand.dtype)
        else:
            zero_dim = _join(zero_dim, operand.dtype)
    return _combine(_combine(dimensioned, zero_dim), number, is_number=True)


def _join(common: DType | None, new: DType) -> DType:
    return new if common is None else promote_types(common, new)


def _combine(high: DType | None, low: DType | None, is_number: bool = False) -> Any:
    """`high`, unless the category of `low` is higher."""
    if high is None or low is None:
        return high or low
    if high.category >= low.category:
        return high
    if low.category == COMPLEX and high.category == FLOAT:
        # The complex dtype has the width of the float operand, so float64[n] + 1j is complex128.
        return high.to_complex()
    if is_number and low.category == FLOAT:
        return get_default_dtype()
    return low


def can_cast(from_: DType, to: DType) -> bool:
    """Whether results of dtype `from_` may be stored as `to`, that is, unless the category of `to` is lower.

    >>> import weft as torch
    >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    check_dtypes("can_cast", from_=from_, to=to)
    return from_.category <= to.category


def check_dtypes(name: str, **arguments: Any) -> Iterable[DType]:
    """Raises: TypeError for an argument that is not a dtype."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, DType):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be torch.dtype, not {type(value).__name__}"
            )
    return arguments.values()
