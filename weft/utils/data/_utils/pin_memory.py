"""Batches in pinned memory, from which an accelerator copies directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ....core.tensor import Tensor


def pin_memory(data: Any, device: Any = None) -> Any:
    """A batch whose tensors are in pinned memory, at any depth of mappings and sequences. Objects may have a method `pin_memory`.

    Raises: RuntimeError without an accelerator.
    """
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pairs = {key: pin_memory(each) for key, each in data.items()}
        return _like(data, pairs)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(each) for each in data))
    if isinstance(data, tuple):
        return type(data)(pin_memory(each) for each in data)
    if isinstance(data, Sequence):
        return _like(data, [pin_memory(each) for each in data])
    return data


def _like(data: Any, values: Any) -> Any:
    """The values in a container of the class of `data`, or in a plain one if the class takes none."""
    try:
        return type(data)(values)
    except TypeError:
        return values
