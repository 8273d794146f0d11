"""Properties of Tensor that programs read all the time, so that machine code reads them (`autograd/native_getters.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    native_property = property
else:

    def native_property(fget: Callable, fset: Any = None, fdel: Any = None) -> property:
        """A property with a class of its own, because machine code takes the place of `__get__` in the class."""
        return type(fget.__name__.strip("_"), (property,), {})(fget, fset, fdel)
