"""Whether the function that runs is one that a transform of `torch.func` calls."""

from __future__ import annotations

import threading
from typing import Any

from ..core.restoring import Restoring


class _Running(threading.local):
    def __init__(self) -> None:
        self.depth = 0


_running = _Running()


class running(Restoring):  # noqa: N801 (used like a function)
    """Inside, a transform calls the function of the user."""

    __slots__ = ("outer",)

    def __enter__(self) -> Any:
        self.outer = _running.depth
        _running.depth = self.outer + 1

    def _restore(self) -> None:
        _running.depth = self.outer


def is_running() -> bool:
    """Whether a transform calls the function that runs."""
    return _running.depth > 0
