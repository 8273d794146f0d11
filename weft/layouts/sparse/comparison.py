"""Computes comparisons, extrema and choices of sparse tensors.

A function whose value is zero where its operands are gives a sparse result: `x != y`, `maximum(x, y)`, `x > 2`, `clamp(x, min=-1)`. Else
the result is dense, as for `x == y`. PyTorch has none of these functions for sparse tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ..parts import is_plain, values_of
from .arithmetic import at_entries, is_number
from .conversion import to_dense
from .pairs import Entries, Union, aligned, union_of, with_entries
from .rules import SPARSE
from .unary import on_values, summed

rule = SPARSE.rule


def _dense(value: Any) -> Any:
    return to_dense(value) if isinstance(value, Tensor) and not is_plain(value) else value


def _union(left: Tensor, right: Tensor) -> tuple[Tensor, Union]:
    left, right = aligned(summed(left), summed(right), "compare")
    return left, union_of(left, summed(right))


def _keeps_zeros(function: Callable, dtype: Any, *operands: Any) -> bool:
    zero = FUNCTIONS["zeros"]((), dtype=dtype)
    return not bool(function(zero, *operands))


# ---- Functions of two operands -----------------------------------------------------------------------------------------


def _define(name: str) -> None:
    function = FUNCTIONS[name]

    def compute(input: Any, other: Any) -> Tensor:
        if is_number(other) and not is_plain(input):
            if _keeps_zeros(function, input.dtype, other):
                return on_values(summed(input), function, other)
        elif not is_number(input) and not is_plain(input) and not is_plain(other):
            if input.shape == other.shape and name not in ("eq", "ge", "le"):
                template, (keys, left, right) = _union(input, other)
                return with_entries(template, Entries(keys, function(left, right)))
        return function(_dense(input), _dense(other))

    rule(name)(compute)


for _name in "eq ne lt gt le ge maximum minimum fmax fmin".split():
    _define(_name)


@rule("isclose")
def isclose(input: Tensor, other: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return FUNCTIONS["isclose"](_dense(input), _dense(other), *args, **kwargs)


def _pair(input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors with the elements of the given ones, but for elements that are zero in both."""
    if is_plain(input) or is_plain(other) or input.shape != other.shape:
        return _dense(input), _dense(other)
    return _union(input, other)[1][1:]


@rule("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same elements; where one has no entry, the other may have an entry of zero."""
    return input.shape == other.shape and FUNCTIONS["equal"](*_pair(input, other))


@rule("allclose")
def allclose(input: Tensor, other: Tensor, *args: Any, **kwargs: Any) -> bool:
    return FUNCTIONS["allclose"](*_pair(input, other), *args, **kwargs)


# ---- Choices -----------------------------------------------------------------------------------------------------------


@rule("clamp")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """The values within bounds; dense if zero is not within them, or if a bound is a tensor."""
    if not is_plain(input) and is_number(min) and is_number(max):
        if _keeps_zeros(FUNCTIONS["clamp"], input.dtype, min, max):
            return on_values(summed(input), FUNCTIONS["clamp"], min, max)
    return FUNCTIONS["clamp"](_dense(input), _dense(min), _dense(max))


@rule("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    return clamp(input, min)


@rule("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    return clamp(input, None, max)


@rule("where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Elements of `input` where the condition holds, and of `other` elsewhere; sparse if both are."""
    if input is None and other is None:
        return FUNCTIONS["where"](_dense(condition))
    if is_number(input) or is_number(other) or is_plain(input) or is_plain(other):
        return FUNCTIONS["where"](_dense(condition), _dense(input), _dense(other))
    return _kept(input, condition) + _kept(other, FUNCTIONS["logical_not"](_dense(condition)))


def _kept(x: Tensor, condition: Tensor) -> Tensor:
    """The values of x where the condition holds, and zeros elsewhere."""
    if is_plain(condition):
        found = at_entries(condition, x)
    else:
        found = values_of(condition.sparse_mask(x))
    return on_values(x, lambda values: values.where(found, values.new_zeros(())))
