"""Mixed precision: which public functions compute in a lower dtype, in float32, or in the widest of their arguments'."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .dtype import DType, bfloat16, float16, float32
from .tensor import Tensor


class _State(threading.local):
    """Both are replaced as a whole, so that a context restores them by assignments."""

    def __init__(self) -> None:
        self.enabled: frozenset[str] = frozenset()  # the types of devices for whose tensors autocast is on
        self.dtypes: dict[str, DType] = {
            "cuda": float16,
            "ipu": float16,
        }  # that products compute in; others in bfloat16

    def dtype(self, device_type: str) -> DType:
        return self.dtypes.get(device_type, bfloat16)


state = _State()
open_contexts: list[None] = []  # has an entry for each `autocast` that is open, in any thread


def _widest(device_type: str, dtypes: tuple[DType, ...]) -> DType:
    return max(dtypes, key=lambda dtype: dtype.itemsize, default=float32)


# What becomes of the floating-point arguments of a function, by the class that its row states (`public(autocast=...)`).
# The functions choose a dtype for a call, given the type of the device and the dtypes of the arguments.
_DTYPES: dict[str, Callable[[str, tuple[DType, ...]], DType]] = {
    # Products, and functions that PyTorch composes of products, gain speed and memory, and lose little precision.
    "lower": lambda device_type, dtypes: state.dtype(device_type),
    # Sums of many terms, and functions that libraries compute, are computed in float32.
    "raise": lambda device_type, dtypes: float32,
    # PyTorch's CPU has fewer functions in lower dtypes than its GPUs.
    "raise on cpu": lambda device_type, dtypes: (
        float32 if device_type == "cpu" else _widest(device_type, dtypes)
    ),
    # Functions that put their arguments together take the widest of their dtypes.
    "widen": _widest,
}


def casting(function: Callable, kind: str) -> Callable:
    """`function`, of the autocast class `kind`: within `autocast` its floating-point arguments are converted first."""
    choose = _DTYPES[kind]

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        if not open_contexts or not state.enabled or kwargs.get("out") is not None:
            return function(*args, **kwargs)
        outer = state.enabled
        taking_part = [*_taking_part((*args, *kwargs.values()))]
        device_type = taking_part[0].spec.device.type if taking_part else "cpu"
        if taking_part and device_type not in outer:
            return function(*args, **kwargs)
        dtype = choose(device_type, tuple([each.spec.dtype for each in taking_part]))
        args, kwargs = converted((args, kwargs), dtype)
        state.enabled = frozenset()  # the functions that it calls run as they are
        try:
            return function(*args, **kwargs)
        finally:
            state.enabled = outer

    return complete


def _takes_part(value: Any) -> bool:
    return isinstance(value, Tensor) and value.spec.dtype in (float32, bfloat16, float16)


def _taking_part(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _taking_part(value)
        elif _takes_part(value):
            yield value


def converted(value: Any, dtype: DType) -> Any:
    """`value`, with the float16, bfloat16 and float32 tensors in it, at any depth, converted to `dtype`."""
    if _takes_part(value):
        return value.to(dtype)
    if isinstance(value, dict):
        return {key: converted(each, dtype) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(converted(each, dtype) for each in value)
    return value
