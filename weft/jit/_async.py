"""`torch.jit.fork` and `wait`: the function is called at once, and its result is a completed future."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.future import Future

__all__ = ["fork", "wait"]


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """Call `func`, and give its result as a completed future.

    >>> import weft as torch
    >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(1), 2))
    tensor([3.])
    """
    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The result of a future."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()
