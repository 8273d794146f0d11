"""Defines `functionalize`, and functions that unwrap the tensors of transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.batched import BatchedStorage, beneath, physical
from ..core.tensor import Tensor
from .running import running


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return a function with the results of `func`.

    PyTorch replaces in-place operations for its tracers. weft traces Python code, so the function itself is returned.

    Raises: RuntimeError for a `remove` other than "mutations" and "mutations_and_views".
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): Valid options for inputs to functionalize are remove='mutations' or "
            f"remove='mutations_and_views'. Got: {remove!r}"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with running():
            return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The batch of which a tensor inside `vmap` is a sample; with `recurse`, of all levels. Other tensors are returned as is."""
    storage = tensor._storage
    if type(storage) is not BatchedStorage:
        return tensor
    return beneath(tensor) if recurse else physical(tensor, storage.level)
