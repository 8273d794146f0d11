"""Results that come later, `torch.futures`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .future import Future as _AnyFuture

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(_AnyFuture, Generic[T]):
    """A result that another thread, or a callback, sets once.

    >>> import weft as torch
    >>> future = torch.futures.Future()
    >>> later = future.then(lambda done: done.value() + 1)
    >>> future.set_result(2)
    >>> later.wait()
    3
    """

    def __init__(self, *, devices: Sequence[Any] | None = None):
        super().__init__(devices or ())

    if TYPE_CHECKING:

        def wait(self) -> T: ...
        def value(self) -> T: ...
        def then(self, callback: Callable[[Future[T]], S]) -> Future[S]: ...

    def set_exception(self, result: BaseException) -> None:
        """Complete the future with an error, which `wait` and `value` raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)


def collect_all(futures: Sequence[_AnyFuture]) -> _AnyFuture:
    """A future of the list, which is done when all of them are; it has the error of the first of them that has one."""
    for each in futures:
        if each is None:
            raise RuntimeError("Future can't be None")
        if not isinstance(each, _AnyFuture):
            raise TypeError(f"collect_all: expected a list of Futures, got {type(each).__name__}")
    together = _AnyFuture()
    lock, left = threading.Lock(), [len(futures)]

    def finished(done: _AnyFuture) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            errors = (each._error for each in futures if each._error is not None)
            together._complete(list(futures), next(errors, None))

    if not futures:
        together.set_result([])
    for each in futures:
        each._when_done(finished)
    return together


def wait_all(futures: Sequence[Future]) -> list:
    """The results of all futures, once they are there.

    Raises: the first error that one of them has.
    """
    return [each.wait() for each in collect_all(futures).wait()]
