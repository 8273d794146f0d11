"""`torch.distributed.rpc.functions`: marks for functions that other processes call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def async_execution(fn: Callable) -> Callable:
    """Decorator: `fn` returns a Future, whose value is sent to the caller."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper._wrapped_async_rpc_function = fn  # type: ignore[attr-defined]
    return wrapper
