"""Locks that are free in a forked child, with whatever they guard complete.

A child has only the thread that called fork. A lock that another thread held would never be released there, and what that
thread was changing would stay half changed. So a fork waits until it holds every lock made here; then parent and child
release them. A lock that is held while waiting for someone else (a pipe, a socket) must not be made here, because a fork
would wait for as long.
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
_holders: list[Iterator] = []  # of the fork that is going on: dropping them releases its locks
_interrupts: list[int] = []  # SIGINT, if it came while that fork was waiting

# Signal handlers may raise after each call, but not within one of these: they are C code.
_acquire_at_once = methodcaller("acquire", False)
_release = methodcaller("release")
_exhaust = deque[None](maxlen=0).extend


def new_lock() -> Any:
    """A lock that forks wait for.

    It is reentrant: a signal handler or a finalizer may need it in the very thread that holds it.
    """
    lock = threading.RLock()
    add_lock(lock)
    return lock


def add_lock(lock: Any) -> None:
    """From now on forks wait for this reentrant lock."""
    _locks.add(ref(lock, _locks.discard))


def _take_all() -> None:
    _interrupts.clear()
    while True:
        try:
            taken: list[Any] = []
            holder = _releasing(taken)
            next(holder)
            wanted = [lock for each in _locks.copy() if (lock := each()) is not None]
            taken.extend(takewhile(_acquire_at_once, wanted))
            if len(taken) == len(wanted):
                _holders.append(holder)
                break
            busy = wanted[len(taken)]
            del holder  # there is no order among the locks, so never wait for one while holding others
            with busy:
                pass
        except KeyboardInterrupt:  # CPython prints what at-fork handlers raise, and goes on
            _interrupts[:] = [signal.SIGINT]


def _releasing(taken: list[Any]) -> Iterator[None]:
    """A generator that releases these locks when it is dropped."""
    releases = map(_release, taken)
    try:
        yield
    finally:
        _exhaust(releases)


if hasattr(os, "register_at_fork"):
    # What runs after the fork is C code, which never looks for signals: a Ctrl-C is raised when `os.fork` has returned.
    os.register_at_fork(before=_take_all, after_in_parent=_holders.clear, after_in_child=_holders.clear)
    # `max` calls `key` with the one element of the list, if there is one.
    os.register_at_fork(after_in_parent=partial(max, _interrupts, default=None, key=_thread.interrupt_main))
