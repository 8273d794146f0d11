"""A thread that works through jobs while the program continues; which threads are weft's own."""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from ..core.locks import new_lock

FILLS_CACHE = "WEFT_WARM" in os.environ  # whether this process is one of `weft warm`


def at_end_of_warming(function: Callable[[], object]) -> None:
    """Call `function` at the end of `weft warm`: it compiles what a later run needs that has other sizes."""
    if FILLS_CACHE:
        atexit.register(function)


_here = threading.local()


def in_background() -> bool:
    """Whether the current thread is one of this file's."""
    return getattr(_here, "in_background", False)


# The threads that weft has started.
own_threads: list[threading.Thread] = []
_before_fork = 0  # threads of the parent, which CPython still counts in a forked child


def has_threads() -> bool:
    """Whether the program itself has threads, so that Python code of another thread may run between any two steps, and during kernels.

    CPython counts the threads that Python code has started, without the main thread.
    """
    own = 0
    for thread in own_threads:
        own += thread.is_alive()
    return _thread._count() - _before_fork > own


def _after_fork() -> None:
    global _before_fork
    own_threads.clear()
    _before_fork = _thread._count()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Background:
    """A thread that runs jobs one after the other, from the first job on.

    A job must not raise. At exit the thread finishes its job and drops the others, because LLVM must not run while the interpreter
    ends. Under `weft warm` it finishes all jobs. A forked child keeps the jobs, the unfinished one included, and starts a thread of
    its own for them with the next job.
    """

    def __init__(self, name: str):
        self.name = name
        self._jobs: deque[Callable[[], None]] = deque()
        self._starting = new_lock()
        self._renew()
        atexit.register(self._stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.stopped = threading.Event()  # a job that waits returns when this is set
        self._thread: threading.Thread | None = None
        self._ready = threading.Semaphore(len(self._jobs))

    def start(self) -> bool:
        """Start the thread, if it does not run yet. False if the system has no more threads, or the interpreter ends."""
        with self._starting:
            if self.stopped.is_set():
                return False
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                own_threads.append(thread)
                self._thread = thread
        return True

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.append(job)
        self._ready.release()

    def _serve(self) -> None:
        _here.in_background = True
        ready, stopped = self._ready, self.stopped
        while ready.acquire() and not stopped.is_set():
            # Ctrl-C or a fork between the two lines of `submit` leaves more jobs than permits, or more permits than jobs.
            while self._jobs and not stopped.is_set():
                self._jobs[0]()
                self._jobs.popleft()

    def wait(self) -> None:
        """Wait until the thread has done all jobs."""
        self._ready.release()
        while self._jobs and self._thread is not None and self._thread.is_alive():
            time.sleep(0.01)

    def _stop(self) -> None:
        if FILLS_CACHE:
            self.wait()
        self.stopped.set()
        self._ready.release()
        if self._thread is not None:
            self._thread.join()
