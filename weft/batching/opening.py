"""Opening a level: from then on every call is watched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..core import dispatch
from ..core.batched import Level, lift, open_levels
from ..core.locks import new_lock
from ..core.tensor import Tensor, new_hooks
from .fallback import recover
from .rules import watch

_lock = new_lock()
_count = 0  # of the open levels, in all threads


@contextmanager
def opened(size: int, randomness: str = "error") -> Iterator[Level]:
    """A level for `size` samples."""
    level = Level(size, randomness)
    outer = open_levels.stack
    open_levels.stack = (*outer, level)
    _change(1)
    try:
        yield level
    finally:
        open_levels.stack = outer
        _change(-1)


def _change(by: int) -> None:
    """Count the open levels. While there is one, all calls are watched."""
    global _count
    with _lock:
        _count += by
        if by == 1 == _count:
            dispatch.watch(watch)
            dispatch.recoverers.append(recover)
            new_hooks.append(_made_within)
        elif not _count:
            dispatch.unwatch(watch)
            dispatch.recoverers.remove(recover)
            new_hooks.remove(_made_within)


def _made_within(tensor: Tensor) -> Tensor:
    """New memory: within a level it is the same for all samples until samples are written into it."""
    return lift(tensor, open_levels.stack[-1], fresh=True) if open_levels.stack else tensor
