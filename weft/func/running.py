"""Whether the function that runs is one that a transform of `torch.func` calls."""

from __future__ import annotations

import threading

from ..autograd.graph import next_order
from ..core.overrides import switch
from ..core.restoring import Restoring


class _Running(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        self.refusal: str | None = None  # why transforms cannot make stand-ins of arguments


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


class refused(Restoring):  # noqa: N801
    """Inside, transforms that make stand-ins of arguments raise NotImplementedError with this reason."""

    __slots__ = ("reason", "outer")

    def __init__(self, reason: str):
        self.reason = reason

    def __enter__(self) -> None:
        self.outer, _running.refusal = _running.refusal, self.reason

    def _restore(self) -> None:
        _running.refusal = self.outer


def check_refused() -> None:
    """Raises: NotImplementedError within `refused`, unless classes with `__torch_function__` are not asked."""
    if _running.refusal is not None and switch.on:
        raise NotImplementedError(_running.refusal)


def is_running() -> bool:
    """Whether a transform calls the function that runs."""
    return _running.depth > 0
