"""What all iterators of data pipes do: begin anew, count their elements, and end when another one is made."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any


class _SnapshotState(Enum):
    """Where the iteration of a pipe is. The next iterator of a restored pipe goes on where the pipe is."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def hook_iterator(make: Callable) -> Callable:
    """An `__iter__` of a pipe, with what all iterators of pipes do.

    A generator function begins with the first `next`, and other functions when they are called, as in PyTorch.
    """
    is_generator = inspect.isgeneratorfunction(make)

    @functools.wraps(make)
    def __iter__(self: Any) -> Iterator:
        # A subclass may call the __iter__ of its base: only the outermost call begins anew.
        if self.__dict__.get("_making_iterator"):
            return make(self)
        restored = self.__dict__.pop("_restored", None)
        if restored is not None:
            self._snapshot_state = _SnapshotState.Iterating
            return restored
        return _begun_later(self, make) if is_generator else _checked(self, self._begin(), _made(self, make))

    return __iter__


def _made(self: Any, make: Callable) -> Iterator:
    self.__dict__["_making_iterator"] = True
    try:
        iterator = make(self)
    finally:
        self.__dict__.pop("_making_iterator", None)
    return iterator if iterator is self else iter(iterator)


def _begun_later(self: Any, make: Callable) -> Iterator:
    yield from _checked(self, self._begin(), _made(self, make))


def _checked(self: Any, number: int, iterator: Iterator) -> Iterator:
    while True:
        if not self._is_current(number):
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same "
                f"IterDataPipe: {self!r}\nThis may be caused multiple references to the same IterDataPipe. We "
                "recommend using `.fork()` if that is necessary."
            )
        try:
            value = next(iterator)
        except StopIteration:
            return
        self._number_of_samples_yielded += 1
        yield value
