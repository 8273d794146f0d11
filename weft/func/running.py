"""Whether the function that runs is one that a transform of `torch.func` calls."""

from __future__ import annotations

import threading

from ..autograd.graph import next_order
from ..core.restoring import Restoring


class _Running(threading.local):
    def __init__(self) -> None:
        self.depth = 0


_running = _Running()


class running(Restoring):  # noqa: N801 (used like a function)
    """Inside, a transform calls the function of the user. What is recorded inside has at least the order that `as` gives."""

    __slots__ = ("outer",)

    def __enter__(self) -> int:
        self.outer = _running.depth
        _running.depth = self.outer + 1
        return next_order()

    def _restore(self) -> None:
        _running.depth = self.outer


def is_running() -> bool:
    """Whether a transform calls the function that runs."""
    return _running.depth > 0
