"""`torch._tensor`: the class of tensors, and how files make objects of its subclasses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.tensor import Tensor
from weft.serialization.rebuild import with_state

__all__ = ["Tensor"]


def _rebuild_from_type_v2(func: Callable, new_type: type, args: tuple, state: Any) -> Any:
    """The result of `func(*args)`, as an object of `new_type` with the attributes of `state`."""
    result = func(*args)
    if type(result) is not new_type:
        result = result.as_subclass(new_type)
    own: Any = getattr(new_type, "__setstate__", None)
    if own is not getattr(Tensor, "__setstate__", None):
        own(result, state)
        return result
    return with_state(result, state)
