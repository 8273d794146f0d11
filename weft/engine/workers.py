"""Threads that share large loops. What a loop computes never depends on how many there are."""

from __future__ import annotations

import ctypes
import os
import threading
from queue import SimpleQueue

_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def available_cpus() -> int:
    """How many processors this process may use: its affinity, cut down to the container's quota."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no affinity
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(count, round(quota))) if quota else count


def _cgroup_quota() -> float | None:
    """Processors granted by the cgroup (version 2, then 1), or None without a limit."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        with open("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") as file:
            quota = int(file.read())
        with open("/sys/fs/cgroup/cpu/cpu.cfs_period_us") as file:
            period = int(file.read())
        return quota / period if quota > 0 else None
    except (OSError, ValueError):
        return None


class _Worker:
    """A parked thread; `give` hands it a part of a loop, `wait` returns when that is done."""

    def __init__(self):
        self.jobs: SimpleQueue = SimpleQueue()
        self.done: SimpleQueue = SimpleQueue()
        threading.Thread(target=self._work, name="weft-worker", daemon=True).start()

    def _work(self):
        while True:
            function, operands, meta, begin, end = self.jobs.get()
            function(operands, meta, begin, end)  # machine code: runs without the interpreter's lock
            self.done.put(None)


_threads = 0  # 0: not yet chosen
_workers: list[_Worker] = []
_busy = threading.Lock()


def get_num_threads() -> int:
    """How many threads share large loops and matrix products.

    >>> import weft
    >>> weft.get_num_threads() >= 1
    True
    """
    global _threads
    if _threads == 0:
        _threads = available_cpus()
    return _threads


def set_num_threads(count: int) -> None:
    """Use `count` threads for large loops and matrix products.

    Raises: RuntimeError unless `count` is a positive int.
    """
    global _threads
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if count < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {count}")
    _threads = count
    _set_blas_threads(count)


def _set_blas_threads(count: int) -> None:
    """Tell the OpenBLAS inside NumPy; another BLAS keeps its own setting."""
    for setter in _blas_setters():
        setter(count)


def _blas_setters():
    import numpy

    folder = os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    for name in names:
        if "openblas" in name:
            library = ctypes.CDLL(os.path.join(folder, name))
            for symbol in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads"):
                if hasattr(library, symbol):
                    yield getattr(library, symbol)
                    break


def run(address: int, operands: int, meta: int, count: int, grain: int = 1) -> None:
    """Run `loop(operands, meta, 0..count)` at `address`, split over the threads at multiples of `grain`."""
    function = _LOOP(address)
    parts = min(get_num_threads(), count // grain)
    if parts <= 1 or not _busy.acquire(blocking=False):  # another Python thread has the workers
        function(operands, meta, 0, count)
        return
    try:
        while len(_workers) < parts - 1:
            _workers.append(_Worker())
        edges = [*(count * part // parts // grain * grain for part in range(parts)), count]
        helpers = _workers[: parts - 1]
        for worker, begin, end in zip(helpers, edges[1:], edges[2:], strict=False):
            worker.jobs.put((function, operands, meta, begin, end))
        try:
            function(operands, meta, 0, edges[1])
        finally:
            _finish(helpers)
    finally:
        _busy.release()


def _finish(helpers: list[_Worker]) -> None:
    """Wait for all parts, also when Ctrl-C arrives: memory must not be freed under a running loop."""
    interrupt = None
    for worker in helpers:
        while True:
            try:
                worker.done.get()
                break
            except KeyboardInterrupt as error:
                interrupt = error
    if interrupt is not None:
        raise interrupt


def _after_fork() -> None:
    global _busy
    _workers.clear()  # threads do not survive a fork
    _busy = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
