"""MaskedTensors whose data and mask are sparse: elementwise functions compute on the values, because all entries are in both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.layout import strided
from ...core.tensor import Tensor
from ...layouts.parts import values_of, with_values
from .core import _with_mask, is_masked_tensor

__all__: list[str] = []


def check_layouts(a: Any, b: Any) -> None:
    """Raises: ValueError if two tensors have different layouts."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")


def on_values(fn: Callable, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`fn` of the values of sparse MaskedTensors, as a MaskedTensor with the entries of the first.

    Raises: RuntimeError if `fn` writes in place.
    """
    first = next(each for each in args if is_masked_tensor(each))
    if _writes_in_place(fn.__name__):
        raise RuntimeError(
            f"{fn.__name__}: the sparse data of a MaskedTensor is not written in place; use the result of the function "
            "that makes a new tensor"
        )
    values = fn(*map(_values, args), **kwargs)
    return _with_mask(with_values(first, values), first._masked_mask)


def _writes_in_place(name: str) -> bool:
    if name.startswith("__"):  # `__iadd__` adds in place, `__invert__` does not
        return name.startswith("__i") and name != "__invert__"
    return name.endswith("_")


def _values(x: Any) -> Any:
    return values_of(x) if isinstance(x, Tensor) and x.layout is not strided else x
