"""`torch.profiler.itt`: marks for Intel's tools, which weft does not make."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]

_NOT_THERE = "ITT functions not installed. Are you sure you have a ITT build?"


def is_available() -> bool:
    """Whether marks are made: no."""
    return False


def range_push(msg: str) -> NoReturn:
    """PyTorch begins a range here. Raises: RuntimeError, as PyTorch without ITT."""
    raise RuntimeError(_NOT_THERE)


def range_pop() -> NoReturn:
    """PyTorch ends a range here. Raises: RuntimeError, as PyTorch without ITT."""
    raise RuntimeError(_NOT_THERE)


def mark(msg: str) -> NoReturn:
    """PyTorch marks a moment here. Raises: RuntimeError, as PyTorch without ITT."""
    raise RuntimeError(_NOT_THERE)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range as a context."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
