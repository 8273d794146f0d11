"""Results that come later, `torch.futures`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .compat.missing import module_getattr as _module_getattr
from .core.device import device as _device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that another thread, or a callback, sets once.

    >>> import weft as torch
    >>> future = torch.futures.Future()
    >>> later = future.then(lambda done: done.value() + 1)
    >>> future.set_result(2)
    >>> later.wait()
    3
    """

    def __init__(self, *, devices: Sequence[Any] | None = None):
        for each in devices or ():
            if _device(each).index is None:
                raise ValueError(f"Expected devices to have indices, got {_device(each)}")
        self._condition = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def wait(self) -> T:
        """The result, once it is there.

        Raises: the error that was set in its place.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The result.

        Raises: RuntimeError if there is none yet, and the error that was set in its place.
        """
        if not self._done:
            raise RuntimeError("the Future is not completed: call wait() to wait for its value")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The future of what `callback`, given this future when it is done, returns."""
        later: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                wrapped = RuntimeError(
                    f"Got the following error when running the callback: {type(error).__name__}: {error}"
                )
                wrapped.__cause__ = error
                later._complete(None, wrapped)
            else:
                later._complete(result, None)

        self._when_done(run)
        return later

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """`callback`, given this future, runs when it is done. An error that it raises is logged."""

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception:
                logging.getLogger(__name__).exception("an error in a callback of a Future")

        self._when_done(run)

    def set_result(self, result: T) -> None:
        """Complete the future, and run its callbacks.

        Raises: RuntimeError if it is completed already.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Complete the future with an error, which `wait` and `value` raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. "
                    "Note that a Future can only be marked completed once."
                )
            self._done, self._value, self._error = True, value, error
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)

    def _when_done(self, callback: Callable[[Future[T]], None]) -> None:
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """A future of the list, which is done when all of them are; it has the first error that one of them has."""
    for each in futures:
        if not isinstance(each, Future):
            raise TypeError(f"collect_all: expected a list of Futures, got {type(each).__name__}")
    together: Future[list[Future]] = Future()
    lock, left = threading.Lock(), [len(futures)]

    def finished(done: Future) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
            failed = done._error is not None and not together.done()
            if failed or (last and not together.done()):
                together._complete(list(futures), done._error)

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


__getattr__ = _module_getattr(__name__)
