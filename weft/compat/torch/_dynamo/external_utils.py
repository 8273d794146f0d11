"""What other modules ask of PyTorch's compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.compiler import is_compiling, wrap_numpy

__all__ = ["is_compiling", "wrap_inline", "wrap_numpy"]


def wrap_inline(fn: Callable) -> Callable:
    """A function that calls `fn`."""

    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner


def call_hook(hook: Callable, *args: Any, **kwargs: Any) -> Any:
    """The result of a hook, or the first argument if it gives None."""
    result = hook(*args)
    return args[0] if result is None else result
