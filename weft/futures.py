"""`torch.futures`: values that are there later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from .compat.missing import module_getattr

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that somebody sets, and for which others wait.

    >>> import weft as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: done.value() * 2)
    >>> future.set_result(4)
    >>> doubled.wait()
    8
    """

    def __init__(self, *, devices: Sequence[Any] | None = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether the value is there."""
        return self._done

    def wait(self) -> T:
        """The value, as soon as it is there. Raises: the exception that was set in its place."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """The value. Raises: RuntimeError if it is not there yet, or the exception that was set in its place."""
        if not self._done:
            raise RuntimeError("Future.value(): the future is not complete yet; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._result

    def set_result(self, result: T) -> None:
        """Set the value. Raises: RuntimeError for a second one."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Let waiting raise an exception."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._complete(None, result)

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                    "completed once."
                )
            self._result, self._error, self._done = result, error, True
            self._changed.notify_all()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(future)` when the value is there."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The Future of what `callback(future)` returns when the value is there."""
        following: Future[S] = Future()

        def follow(future: Future[T]) -> None:
            try:
                result = callback(future)
            except Exception as error:
                message = (
                    f"Got the following error when running the callback: {type(error).__name__}: {error}"
                )
                following.set_exception(RuntimeError(message))
            else:
                following.set_result(result)

        self.add_done_callback(follow)
        return following


def collect_all(futures: Sequence[Future]) -> Future[list[Future]]:
    """The Future of the list of `futures`, complete when all of them are."""
    collected: Future[list[Future]] = Future()
    left = len(futures)
    lock = threading.Lock()
    if not futures:
        collected.set_result([])

    def count(future: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            collected.set_result(list(futures))

    for future in futures:
        future.add_done_callback(count)
    return collected


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """The values of all `futures`, as soon as they are there."""
    return [future.wait() for future in futures]


__getattr__ = module_getattr(__name__)
