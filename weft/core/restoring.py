"""Context managers that restore their state even if a signal interrupts `__exit__`.

CPython runs signal handlers, which may raise an exception, at the start of a Python function, after each call, and at the end
of each iteration of a loop. It runs no handler between two plain assignments. So a signal can interrupt an ordinary `__exit__`
before its first assignment, and the state is never restored. When the engine starts, it replaces `Restoring.__exit__` by
machine code (`engine/exits.py`), which calls `_restore`, calls it again if a signal interrupted it, and re-raises the exception.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

P = ParamSpec("P")


class Restoring:
    """Base class of context managers that change state in `__enter__` and restore it in `_restore`.

    `__enter__` changes the state in its last statements, without a call between them. `_restore` may run twice, so running
    it again must change nothing.
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
    """`contextlib.contextmanager` for generators that restore state in a `finally` and do not handle exceptions."""

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> _Generated:
        return _Generated(functools.partial(function, *args, **kwargs))

    return make
