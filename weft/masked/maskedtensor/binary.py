"""Functions of two elements: the inputs have the same mask, or only one of them has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.layout import strided
from ...library.namespaces import ops
from .core import _masks_match, _maybe_get_mask, _with_mask, is_masked_tensor
from .sparse_data import check_layouts, on_values

__all__: list[str] = []

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod "
    "logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt "
    "less_equal lt less maximum minimum fmax fmin not_equal"
).split()

INPLACE_BINARY_NAMES = [
    f"{name}_"
    for name in BINARY_NAMES
    if name not in ("logaddexp", "logaddexp2", "equal", "fmin", "minimum", "maximum", "fmax")
]

NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]


def _get_at_least_one_mask(a: Any, b: Any) -> Any:
    """The mask of the inputs.

    Raises: ValueError if they have different ones.
    """
    if not _masks_match(a, b):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )
    mask = _maybe_get_mask(a)
    return _maybe_get_mask(b) if mask is None else mask


def _apply_native_binary(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    """`fn` of two values, at least one of them a MaskedTensor."""
    values = [*args, *(kwargs.pop(name) for name in ("input", "self", "other") if name in kwargs)]
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    sparse = any(is_masked_tensor(each) and each.layout is not strided for each in values)
    if sparse:
        check_layouts(*values[:2])
    mask = _get_at_least_one_mask(*values[:2])
    if sparse:
        return on_values(fn, values, {})
    result = fn(*values)
    if is_masked_tensor(result) and result is values[0]:
        return result
    return _with_mask(result, mask if mask.shape == result.shape else mask.expand(result.shape))
