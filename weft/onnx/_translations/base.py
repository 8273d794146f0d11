"""How functions of torch are written in ONNX: one translation for each, under the function's own name.

A translation takes the arguments as the traced program passed them, and returns the name of its ONNX value, or a tuple of
names. `b` is the Builder; `b.result()` is the tensor, without its memory, that the function gave for the example inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Name of a function or method -> its translation.
TRANSLATIONS: dict[str, Callable[..., Any]] = {}


def translates(*names: str) -> Callable[[Callable], Callable]:
    """Decorator: the translation of the functions, methods and operators of these names."""

    def note(function: Callable) -> Callable:
        for name in names or (function.__name__,):
            TRANSLATIONS[name] = function
        return function

    return note


def translate_rows(table: dict[str, Callable]) -> None:
    """State translations that are one expression each. A key may have several names."""
    for names, function in table.items():
        translates(*names.split())(function)


def dims_of(value: Any) -> list[int]:
    """One dimension or several, as a list."""
    return list(value) if isinstance(value, (tuple, list)) else [value]


def per_dim(value: Any, count: int) -> list[Any]:
    """One number for all dimensions, or one for each."""
    items = dims_of(value)
    return items * count if len(items) == 1 else items


def positive(dim: int, rank: int) -> int:
    """A dimension, counted from the front."""
    return dim + rank if dim < 0 else dim


def given_sizes(sizes: tuple) -> list[Any]:
    """The sizes of `view(2, 3)`, `view((2, 3))` and `view(size=(2, 3))`."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else list(sizes)
