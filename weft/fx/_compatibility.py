"""The mark that PyTorch puts on the stable parts of `torch.fx`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

__all__ = ["compatibility"]

_MARKED_WITH_COMPATIBILITY: dict[object, None] = {}
_BACK_COMPAT_OBJECTS: dict[object, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Decorator: note whether a function or class keeps its interface. It gives back what it gets."""

    def mark(function: T) -> T:
        _MARKED_WITH_COMPATIBILITY[function] = None
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS[function] = None
        return function

    return mark
