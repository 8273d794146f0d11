"""`torch.profiler.itt`: marks for Intel's tools, which weft does not make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..compat.missing import module_getattr

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether marks are made: no."""
    return False


def range_push(msg: str) -> None:
    """Begin a range, if anything was listening."""


def range_pop() -> None:
    """End the range that began last."""


def mark(msg: str) -> None:
    """Mark a moment, if anything was listening."""


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range as a context."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__getattr__ = module_getattr(__name__)
