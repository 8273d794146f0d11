"""Opening a level: from then on every call is watched."""

from __future__ import annotations

from ..core import dispatch
from ..core.batched import Level, function_hooks, lift, open_levels
from ..core.locks import new_lock
from ..core.restoring import Restoring
from ..core.tensor import Tensor, new_hooks
from . import functions
from .fallback import recover
from .rules import watch

_lock = new_lock()
_count = 0  # of the open levels, in all threads


class opened(Restoring):  # noqa: N801 (used like a function)
    """Opens a level for `size` samples: `with opened(size) as level`."""

    __slots__ = ("level", "outer", "is_open")

    def __init__(self, size: int, randomness: str = "error"):
        self.level = Level(size, randomness)
        self.is_open = False

    def __enter__(self) -> Level:
        outer = self.outer = open_levels.stack
        _change(1)
        self.is_open = True
        open_levels.stack = (*outer, self.level)
        return self.level

    def _restore(self) -> None:
        open_levels.stack = self.outer
        if self.is_open:
            self.is_open = False
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
            function_hooks.append(functions.apply)
        elif not _count:
            dispatch.unwatch(watch)
            dispatch.recoverers.remove(recover)
            new_hooks.remove(_made_within)
            function_hooks.remove(functions.apply)


def _made_within(tensor: Tensor) -> Tensor:
    """New memory: within a level it is the same for all samples until samples are written into it."""
    for level in open_levels.stack:
        tensor = lift(tensor, level, fresh=True)
    return tensor
