"""A result that is there later: what `torch.jit.fork` returns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Future:
    """A result, or an error, that one thread sets and others wait for."""

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._condition = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable] = []

    def done(self) -> bool:
        """Whether the result is there."""
        return self._done

    def wait(self) -> Any:
        """The result, as soon as it is there.

        Raises: the error that was set in its place.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._result

    def value(self) -> Any:
        """The result, which must be there.

        Raises: RuntimeError if it is not.
        """
        if not self._done:
            raise RuntimeError("Future.value(): the result is not there yet; wait() waits for it")
        return self.wait()

    def set_result(self, result: Any) -> None:
        """Set the result. Raises: RuntimeError if there is one already."""
        self._finish(result, None)

    def set_exception(self, error: BaseException) -> None:
        """Set an error in place of the result."""
        self._finish(None, error)

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """A future of what `callback(self)` returns once this one is done."""
        following = type(self)()

        def run(future: Any) -> None:
            try:
                following.set_result(callback(future))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Call `callback(self)` once this future is done."""
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed "
                    "once."
                )
            self._done, self._result, self._error = True, result, error
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        for callback in callbacks:
            callback(self)
