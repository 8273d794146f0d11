"""Mixed precision: which public functions compute in a lower dtype, in float32, or in the widest of their arguments'."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from .dtype import DType, bfloat16, float16, float32
from .tensor import Tensor


class _State(threading.local):
    enabled = False
    dtype: DType = bfloat16


state = _State()
open_contexts: list[None] = []  # has an entry for each `autocast` that is open, in any thread

# What becomes of the floating-point arguments of a function, by the class that its row states (`public(autocast=...)`).
# The functions choose a dtype for a call, given the dtypes of its arguments.
_DTYPES: dict[str, Callable[[tuple[DType, ...]], DType]] = {
    # Products, and functions that PyTorch composes of products, gain speed and memory, and lose little precision.
    "lower": lambda dtypes: state.dtype,
    # Sums of many terms, and functions that libraries compute, are computed in float32.
    "raise": lambda dtypes: float32,
    # Functions that put their arguments together take the widest of their dtypes.
    "widen": lambda dtypes: max(dtypes, key=lambda dtype: dtype.itemsize, default=float32),
}


def casting(function: Callable, kind: str) -> Callable:
    """`function`, of the autocast class `kind`: within `autocast` its floating-point arguments are converted first."""
    choose = _DTYPES[kind]

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        if not open_contexts or not state.enabled or kwargs.get("out") is not None:
            return function(*args, **kwargs)
        dtypes = tuple(_dtypes((*args, *kwargs.values())))
        args, kwargs = converted((args, kwargs), choose(dtypes))
        state.enabled = False  # the functions that it calls run as they are
        try:
            return function(*args, **kwargs)
        finally:
            state.enabled = True

    return complete


def _takes_part(value: Any) -> bool:
    return isinstance(value, Tensor) and value.spec.dtype in (float32, bfloat16, float16)


def _dtypes(values: Any):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _dtypes(value)
        elif _takes_part(value):
            yield value.spec.dtype


def converted(value: Any, dtype: DType) -> Any:
    """`value`, with the float16, bfloat16 and float32 tensors in it, at any depth, converted to `dtype`."""
    if _takes_part(value):
        return value.to(dtype)
    if isinstance(value, dict):
        return {key: converted(each, dtype) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(converted(each, dtype) for each in value)
    return value
