"""Locks that work across `os.fork`.

A forked child has only the thread that called fork. If another thread held a lock at this moment, no thread of the child would
ever release the lock, and the data that it guards would stay half modified. So a fork first acquires every lock of this module.
Afterwards parent and child release them. Do not use such a lock while waiting for a pipe or a socket, because a fork would
wait as well.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from operator import methodcaller
from typing import Any
from weakref import ref

_locks: set[ref] = set()
_holders: list[Iterator] = []  # generators that release the locks of the current fork when they are deleted
_interrupts: list[int] = []  # contains SIGINT if it arrived while the current fork was waiting

# A signal handler may raise an exception after any Python call, but not inside these functions, because they are C code.
_acquire_at_once = methodcaller("acquire", False)
_release = methodcaller("release")
_exhaust = deque[None](maxlen=0).extend


def new_lock() -> Any:
    """A lock that `os.fork` acquires.

    The lock is reentrant, because a signal handler or a finalizer may acquire it in the thread that holds it.
    """
    lock = threading.RLock()
    add_lock(lock)
    return lock


def add_lock(lock: Any) -> None:
    """Let `os.fork` acquire this reentrant lock from now on."""
    _locks.add(ref(lock, _locks.discard))


def _take_all() -> None:
    _interrupts.clear()
    while True:
        try:
            taken: list[Any] = []
            holder = _releasing(taken)
            next(holder)
            locks = [lock for each in _locks.copy() if (lock := each()) is not None]
            taken.extend(takewhile(_acquire_at_once, locks))
            if len(taken) == len(locks):
                _holders.append(holder)
                break
            busy = locks[len(taken)]
            del holder  # the locks have no order, so release all of them before waiting for one
            with busy:
                pass
        except (
            KeyboardInterrupt
        ):  # CPython prints exceptions of at-fork handlers and continues, so store it for later
            _interrupts[:] = [signal.SIGINT]


def _releasing(taken: list[Any]) -> Iterator[None]:
    """A generator that releases these locks when it is deleted."""
    releases = map(_release, taken)
    try:
        yield
    finally:
        _exhaust(releases)


if hasattr(os, "register_at_fork"):
    # The handlers after the fork are C code, which never checks for signals. A Ctrl-C is raised after `os.fork` returns.
    os.register_at_fork(before=_take_all, after_in_parent=_holders.clear, after_in_child=_holders.clear)
    # `max` calls `key` with the element of the list, if the list is not empty.
    os.register_at_fork(after_in_parent=partial(max, _interrupts, default=None, key=_thread.interrupt_main))
