"""A benchmark of the calls of a module that several threads make per second."""

from __future__ import annotations

import random
import threading
import time
from types import SimpleNamespace
from typing import Any

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(
    time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None
) -> str:
    """Return a time with its unit.

    >>> format_time(time_ms=1500)
    '1.500s'
    """
    given = [each for each in (time_us, time_ms, time_s) if each is not None]
    if len(given) != 1:
        raise AssertionError("only one of time_us, time_ms and time_s should be given")
    microseconds = time_us if time_us is not None else time_ms * 1e3 if time_ms is not None else time_s * 1e6  # type: ignore[operator]
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class ExecutionStats:
    """The results of a benchmark."""

    def __init__(self, c_stats: Any, benchmark_config: Any) -> None:
        self._c_stats, self.benchmark_config = c_stats, benchmark_config

    @property
    def latency_avg_ms(self) -> float:
        """Return the mean time of a call, in milliseconds."""
        return self._c_stats.latency_avg_ms

    @property
    def num_iters(self) -> int:
        """Return the number of calls."""
        return self._c_stats.num_iters

    @property
    def iters_per_second(self) -> float:
        """Return the number of calls per second, of all threads."""
        return self.num_iters / self.total_time_seconds

    @property
    def total_time_seconds(self) -> float:
        """Return the time that all calls took, in seconds."""
        return self.num_iters * (self.latency_avg_ms / 1000.0) / self.benchmark_config.num_calling_threads

    def __str__(self) -> str:
        return "\n".join(
            (
                f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}",
                f"Total number of iterations: {self.num_iters}",
                f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
                f"Total time: {format_time(time_s=self.total_time_seconds)}",
            )
        )

    __repr__ = __str__


class ThroughputBenchmark:
    """Calls a module from several threads, with inputs drawn from those that were added.

    >>> import weft as torch
    >>> benchmark = ThroughputBenchmark(torch.nn.Linear(2, 2))
    >>> benchmark.add_input(torch.ones(1, 2))
    >>> benchmark.benchmark(num_warmup_iters=1, num_iters=3).num_iters
    3
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._inputs: list[tuple[tuple, dict]] = []

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module once with these arguments."""
        return self._module(*args, **kwargs)

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Add arguments for calls."""
        self._inputs.append((args, kwargs))

    def benchmark(
        self,
        num_calling_threads: int = 1,
        num_warmup_iters: int = 10,
        num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:
        """Call the module `num_warmup_iters` times in each thread, then measure `num_iters` calls.

        Raises: RuntimeError if no arguments were added.
        """
        if not self._inputs:
            raise RuntimeError("Please provide benchmark inputs. Did you forget to call add_input()?")
        share, more = divmod(num_iters, num_calling_threads)
        counts = [share + (number < more) for number in range(num_calling_threads)]
        ready = threading.Barrier(num_calling_threads + 1)
        errors: list[Exception] = []

        def run(count: int) -> None:
            chosen = [random.choice(self._inputs) for _ in range(count)]
            try:
                for _ in range(num_warmup_iters):
                    args, kwargs = random.choice(self._inputs)
                    self._module(*args, **kwargs)
                ready.wait()
                for args, kwargs in chosen:
                    self._module(*args, **kwargs)
            except Exception as error:
                errors.append(error)
                ready.abort()

        threads = [threading.Thread(target=run, args=(count,)) for count in counts]
        for thread in threads:
            thread.start()
        try:
            ready.wait()
        except threading.BrokenBarrierError:
            pass
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
        if errors:
            raise errors[0]
        config = SimpleNamespace(
            num_calling_threads=num_calling_threads, num_warmup_iters=num_warmup_iters, num_iters=num_iters
        )
        latency = seconds * 1000.0 * num_calling_threads / max(num_iters, 1)
        return ExecutionStats(SimpleNamespace(latency_avg_ms=latency, num_iters=num_iters), config)
