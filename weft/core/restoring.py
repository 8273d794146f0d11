"""Context managers whose state is put back, whenever a signal arrives.

CPython runs signal handlers, which may raise, when a Python function begins, after each call, and when a loop jumps back.
So a `with` block cannot lose its state between two plain assignments, but an ordinary `__exit__` can be interrupted before
its first one. Here `__exit__` becomes machine code when the engine starts (`engine/exits.py`): it calls `_restore`, calls it
once more if that was interrupted, and then lets the exception go on.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

P = ParamSpec("P")


class Restoring:
    """Base of context managers that change state in `__enter__` and put it back in `_restore`.

    `__enter__` makes its changes last and without a call in between or after them. `_restore` may run twice, so it makes
    its changes without calls, too, or such that doing them again changes nothing.
    """

    __slots__ = ()

    def _restore(self) -> None:
        raise NotImplementedError

    def __exit__(self, *exception: Any) -> None:
        self._restore()


class _Generated(Restoring, contextlib.ContextDecorator):
    def __init__(self, make: Callable[[], Iterator[Any]]):
        self._make = make
        self._steps: Any = make()

    def _recreate_cm(self) -> _Generated:
        return _Generated(self._make)

    def __enter__(self) -> Any:
        try:
            return next(self._steps)
        except BaseException:
            self._steps.close()
            raise

    def _restore(self) -> None:
        self._steps.close()


def contextmanager(function: Callable[P, Iterator[Any]]) -> Callable[P, _Generated]:
    """`contextlib.contextmanager` for generators that put state back in a `finally` and do not look at exceptions."""

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> _Generated:
        return _Generated(functools.partial(function, *args, **kwargs))

    return make
