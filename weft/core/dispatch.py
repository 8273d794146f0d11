"""The one place where calls of ops can be intercepted, below autograd's public functions and above all kernels.

A watcher is a function `(op, method, args, static) -> answer`. `Op.__call__`, and the methods of ops that write into a
tensor, ask the watchers first, the newest one first. The first answer that is not `PLAIN` is the result of the call. Batching
(`vmap`), dispatch modes and counters are watchers. While there are none, `op(...)` is `op.run(...)` itself.

The public functions of elementwise ops contain a copy of the code that runs a plan, for tensors whose class is exactly
`Tensor`. A watcher that must see plain tensors as well is added with `plain=True`. While there is
one, the `fast_path_switches` are off, and these functions call the op instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from .locks import new_lock

# What a watcher answers when the call shall go on as if it had not been watched.
PLAIN: Any = type("Plain", (), {"__repr__": lambda self: "PLAIN"})()

Watcher = Callable[[Any, str, tuple, dict[str, Any]], Any]

watchers: list[Watcher] = []
# Each is called with a bool when the first watcher is added, and when the last one is taken away.
watch_switches: list[Callable[[bool], None]] = []
# Each is called with a bool when the fast paths for plain tensors are to be turned on or off.
fast_path_switches: list[Callable[[bool], None]] = []
_lock = new_lock()
_plain: list[Watcher] = []  # the watchers that see plain tensors


def watched(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """The first answer of the watchers to a call of `op.method(*args, **static)`; PLAIN if all of them let it pass."""
    for watcher in tuple(reversed(watchers)):  # a copy, because another thread may change the list meanwhile
        answer = watcher(op, method, args, static)
        if answer is not PLAIN:
            return answer
    return PLAIN


def watch(watcher: Watcher, *, plain: bool = False) -> None:
    """Let `watcher` see the calls of ops in all threads. It sees calls with plain tensors only if `plain` is True."""
    with _lock:
        watchers.append(watcher)
        if len(watchers) == 1:
            _switch(watch_switches, True)
        if plain:
            _plain.append(watcher)
            _switch(fast_path_switches, False)


def unwatch(watcher: Watcher) -> None:
    """Take back one call of `watch`."""
    with _lock:
        _remove_last(watchers, watcher)
        if not watchers:
            _switch(watch_switches, False)
        if watcher in _plain:
            _remove_last(_plain, watcher)
            _switch(fast_path_switches, not _plain)


def _remove_last(watching: list[Watcher], watcher: Watcher) -> None:
    for place in range(len(watching) - 1, -1, -1):
        if watching[place] == watcher:
            del watching[place]
            return


def _switch(switches: list[Callable[[bool], None]], on: bool) -> None:
    for switch in switches:
        switch(on)


class Lifetimes:
    """The living objects of a kind that a watcher must see, because other calls pay for a watch.

    The `switches` are called with True when there is an object and there was none before, and with False when the last one
    is deleted.
    """

    def __init__(self) -> None:
        self.switches: list[Callable[[bool], None]] = []
        self._living: set[ref] = set()

    def note(self, value: Any) -> None:
        """Count `value` as long as it lives."""
        with _lock:
            self._living.add(ref(value, self._forget))
            if len(self._living) == 1:
                _switch(self.switches, True)

    def _forget(self, dead: ref) -> None:
        with _lock:
            self._living.discard(dead)
            if not self._living:
                _switch(self.switches, False)


# ---- Calls that failed -------------------------------------------------------------------------------------------------

Recoverer = Callable[[Callable, tuple, dict[str, Any], Exception], Any]

# Each is a function `(function, args, kwargs, error) -> answer`, asked when a call of a public function raised an error. The
# first answer that is not `PLAIN` is the result of the call.
recoverers: list[Recoverer] = []


def recovered(function: Callable, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
    """The result of a call of a public function that raised `error`; PLAIN if no recoverer has one."""
    for recoverer in recoverers:
        answer = recoverer(function, args, kwargs, error)
        if answer is not PLAIN:
            return answer
    return PLAIN
