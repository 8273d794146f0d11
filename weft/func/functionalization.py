"""Functions without writes in place, and what is inside of transformed tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """A function with the results of `func`.

    PyTorch replaces writes in place, so that tracers do not see them. Results are the same, and weft traces Python.

    Raises: RuntimeError for a `remove` other than "mutations" and "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): Valid options for inputs to functionalize are remove='mutations' or "
            f"remove='mutations_and_views'. Got: {remove!r}"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor itself: transforms of weft wrap none."""
    return tensor
