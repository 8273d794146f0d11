"""The measured limit of a case: the time in which this machine only moves the bytes that the case has to move."""

import os
import threading
import time
from collections.abc import Callable

import numpy as np

SPREAD = 2**18  # bytes; below this, one core's loop is over before a second core has begun


class Limit:
    """Plain loops over as many bytes as a case reads and writes, by one thread or one thread per core.

    What is read and written is copied. What is left is only read (a maximum) or only written (a fill).
    """

    def __init__(self, read: int, written: int) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        shares = {1, cores if read + written >= SPREAD else 1}
        self.crews = [[loop(read // share, written // share) for _ in range(share)] for share in shares]

    def runs_in(self, seconds: float) -> int:
        runs = 1
        while (taken := self.time(runs) * runs) < seconds / 4:
            runs *= 4
        return max(1, round(runs * seconds / taken))

    def time(self, runs: int) -> float:
        """Seconds of one pass over the bytes. A thread repeats its own share, so that no start is in the time."""
        return min(together(crew, runs) for crew in self.crews) / runs


def loop(read: int, written: int) -> Callable[[], None]:
    """One pass over `read` and `written` bytes."""
    source, target = np.ones(max(read, 64) // 4, np.int32), np.ones(max(written, 64) // 4, np.int32)
    both = min(len(source), len(target))

    def run() -> None:
        if written:
            np.copyto(target[:both], source[:both])
            target[both:].fill(1)
        if len(source) > both or not written:
            source[both if written else 0 :].max()

    return run


def together(crew: list[Callable[[], None]], runs: int) -> float:
    """Seconds until every member of the crew has run `runs` times, from when the first has begun."""
    ready = threading.Barrier(len(crew))
    times: list[tuple[float, float]] = []

    def work(run: Callable[[], None]) -> None:
        run()
        ready.wait()
        start = time.perf_counter()
        for _ in range(runs):
            run()
        times.append((start, time.perf_counter()))

    threads = [threading.Thread(target=work, args=(run,)) for run in crew[1:]]
    for thread in threads:
        thread.start()
    work(crew[0])
    for thread in threads:
        thread.join()
    return max(end for _, end in times) - min(start for start, _ in times)
