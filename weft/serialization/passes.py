"""Two passes over one pickle, where its storages come behind it in the file.

Sparse, quantized and nested tensors are made from the numbers of other tensors: indices are checked, scales are read.
In a stream these numbers follow the pickle. So a first pass finds the storages, with empty tensors in the place of these,
and a second one runs when the storages have their numbers. Files without such tensors need the first pass only.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..core.tensor import Tensor


class _FirstPass(threading.local):
    left_out: list[str] | None = None  # the functions that were not called; None outside of a first pass


_first = _FirstPass()


@contextlib.contextmanager
def first_pass() -> Iterator[list[str]]:
    """A context in which functions that need numbers return an empty tensor. Yields the names of those that were called."""
    outer, _first.left_out = _first.left_out, []
    try:
        yield _first.left_out
    finally:
        _first.left_out = outer


def needs_numbers(rebuild: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator of a function that reads the numbers of its arguments."""

    @functools.wraps(rebuild)
    def rebuilt(*arguments: Any) -> Tensor:
        if _first.left_out is None:
            return rebuild(*arguments)
        _first.left_out.append(rebuild.__name__)
        return Tensor()

    return rebuilt
