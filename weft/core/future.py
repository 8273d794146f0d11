"""`torch._C.Future`, a result that is there later; `torch.futures.Future` derives from it, and `torch.jit.fork` returns it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from .device import device


class Future:
    """A result, or an error, that one thread or a callback sets once and for which others wait."""

    def __init__(self, devices: Sequence[Any] = ()) -> None:
        for each in devices:
            if device(each).index is None:
                raise ValueError(f"Expected devices to have indices, got {device(each)}")
        self._condition = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], None]] = []

    def __getstate__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future: pickle its value() instead")

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done

    def wait(self) -> Any:
        """The result, once it is there.

        Raises: the error that was set in its place.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The result.

        Raises: RuntimeError if there is none yet, and the error that was set in its place.
        """
        if not self._done:
            raise RuntimeError("the Future is not completed: call wait() to wait for its value")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """The future of the result of `callback(self)`, which runs once this future is done."""
        later = Future()

        def run(done: Future) -> None:
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

    def add_done_callback(self, callback: Callable[[Any], Any]) -> None:
        """Run `callback(self)` once this future is done. An error that the callback raises is logged."""

        def run(done: Future) -> None:
            try:
                callback(done)
            except Exception:
                logging.getLogger(__name__).exception("an error in a callback of a Future")

        self._when_done(run)

    def set_result(self, result: Any) -> None:
        """Complete the future, and run its callbacks.

        Raises: RuntimeError if the future is complete already.
        """
        self._complete(result, None)

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

    def _when_done(self, callback: Callable[[Any], None]) -> None:
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)
