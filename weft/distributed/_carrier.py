"""The thread of a group that carries out collectives that the program does not wait for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ._group import Work
from .engine.engine import Request


class QueuedWork(Work):
    """A collective that the thread of the group carries out."""

    def __init__(self, job: Callable[[], None], result: Any) -> None:
        super().__init__(result)
        self._job: Callable[[], None] | None = job
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._futures: list[Any] = []

    def carry_out(self) -> None:
        assert self._job is not None
        try:
            self._job()
        except BaseException as error:
            self._error = error
        self._job = None  # it keeps tensors alive
        with self._lock:
            self._over.set()
        for future in self._futures:
            self._complete(future)

    def _complete(self, future: Any) -> None:
        if self._error is None:
            future.set_result(self._result)
        else:
            future.set_exception(self._error)

    def is_completed(self) -> bool:
        return self._over.is_set()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds()
        if not self._over.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"Work.wait: timed out after {seconds:g} s")
        if self._error is not None:
            raise self._error
        return True

    def get_future(self) -> Any:
        from ..core.futures import Future  # loaded when first used

        future: Any = Future()
        with self._lock:
            waits = not self._over.is_set()
            if waits:
                self._futures.append(future)
        if not waits:
            self._complete(future)
        return future


class MessageWork(Work):
    """A message that was begun."""

    def __init__(self, request: Request, result: Any) -> None:
        super().__init__(result)
        self._request = request

    def go_on(self) -> MessageWork:
        """This message, which makes progress although the program does not wait for it now."""
        self._request.go_on()
        return self

    def is_completed(self) -> bool:
        return self._request.is_done()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        try:
            self._request.wait(timeout if timeout.total_seconds() > 0 else None)
        except RuntimeError as error:
            self._error = error
            raise
        return True

    def get_future(self) -> Any:
        """A Future with the tensor, which this waits for."""
        self.wait()
        return super().get_future()

    def source_rank(self) -> int:
        self.wait()
        if self._request.source is None:
            return super().source_rank()
        return self._request.source


class Carrier:
    """Carries the collectives of a group out in the order in which they were begun."""

    def __init__(self) -> None:
        self.turn = threading.Lock()  # whoever carries a collective out holds it
        self.queue: deque[QueuedWork] = deque()  # what the thread has still to carry out
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def carry_out(self, job: Callable[[], None], result: Any, wait: bool) -> Work:
        """Carry out `job`: here, if the caller waits for it and nothing was begun before; else in the thread.

        A callback of a future runs in the thread. The collectives that it calls are carried out at once, before those that were begun meanwhile, so
        that their order is the same on all ranks.
        """
        if threading.current_thread() is self._thread:
            job()
            return Work(result)
        if not wait or self.queue or not self.turn.acquire(False):
            return self._begun(QueuedWork(job, result))
        try:
            job()
        finally:
            self.turn.release()
        return Work(result)

    def _begun(self, work: QueuedWork) -> QueuedWork:
        with self._changed:
            self.queue.append(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="weft-collectives", daemon=True)
                self._thread.start()
            self._changed.notify()
        return work

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._closed and not self.queue:
                    self._changed.wait()
                if not self.queue:
                    return
            # A work leaves the queue after it has got its turn, so that no later call comes before it.
            with self.turn:
                self.queue.popleft().carry_out()

    def close(self) -> None:
        """Let the thread end when it has carried out what was begun."""
        with self._changed:
            self._closed = True
            self._changed.notify()
