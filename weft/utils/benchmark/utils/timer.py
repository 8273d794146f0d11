"""`Timer` runs a statement often enough to time it."""

import ast
import textwrap
import timeit
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

import weft

from .common import SUSPECT_SPREAD, Measurement, TaskSpec, set_torch_threads

# Reading the clock may cost this fraction of a block's time, ...
MAX_CLOCK_OVERHEAD = 1e-4
# ... and a block takes at least this fraction of the whole measurement.
MIN_BLOCK_FRACTION = 1e-3

Callback = Callable[[int, float], NoReturn]


class Language(Enum):
    """The language of a timed statement; only Python can be timed."""

    PYTHON = 0
    CPP = 1


LANGUAGES = {"py": Language.PYTHON, "python": Language.PYTHON, "cpp": Language.CPP, "c++": Language.CPP}


def timer() -> float:
    """Return the time in seconds, read once all tensors that are still being computed are done."""
    weft.synchronize()
    return timeit.default_timer()


class Timer:
    """Time a Python statement, with warm-up, a fixed number of threads and replicates.

    `stmt` and `setup` are source code and see `globals` and the name `torch`. `label`, `sub_label`,
    `description` and `env` say where `Compare` shows the result. weft may put off the work of a statement
    until somebody looks at its result: if `stmt` ends with an expression, every run looks at its value.
    Errors: ValueError for an unknown language, NotImplementedError for C++.

    >>> Timer("x + x", setup="x = torch.ones(3)").timeit(100).number_per_run
    100
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        chosen = language if isinstance(language, Language) else LANGUAGES.get(language)
        if chosen is Language.CPP:
            raise NotImplementedError("Timer(language='cpp'): weft has no C++ interface to time")
        if chosen is None:
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. "
                "Most likely this code can simply be moved to `setup`."
            )
        stmt, setup = dedent(stmt), dedent(setup)
        self._task_spec = TaskSpec(
            stmt=stmt,
            setup=setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )
        self._timer = timeit.Timer(
            stmt=looked_at(stmt),
            setup=setup,
            timer=timer,
            globals={"torch": weft, **(globals or {}), LOOK: lambda value: weft.synchronize()},
        )
        self._clock = timer

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run the statement `number` times, after a warm-up, and measure the whole once."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timer.timeit(max(number // 100, 2))
            return self._measurement(number, [self._timer.timeit(number)])

    def blocked_autorange(self, callback: Callback | None = None, min_run_time: float = 0.2) -> Measurement:
        """Measure blocks of runs for at least `min_run_time` seconds.

        The blocks are long enough for the clock not to count; `callback(runs, seconds)` sees each.
        """
        return self._blocks(lambda times: sum(times) >= min_run_time, callback, min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = SUSPECT_SPREAD,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callback | None = None,
    ) -> Measurement:
        """Measure blocks of runs until their interquartile range is below `threshold` times the median.

        At least four blocks and `min_run_time` seconds, at most about `max_run_time` seconds in all;
        `callback(runs, seconds)` sees each block.
        """

        def enough(times: list[float]) -> bool:
            if sum(times) >= max_run_time:
                return True
            return (
                len(times) > 3
                and sum(times) > min_run_time
                and self._measurement(1, times).meets_confidence(threshold)
            )

        return self._blocks(enough, callback, min_run_time)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Raises: NotImplementedError, as PyTorch does: `blocked_autorange` repeats."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callback | None = None) -> NoReturn:
        """Raises: NotImplementedError, as PyTorch does: `blocked_autorange` chooses the number of runs."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, number: int = 100, **options: Any) -> NoReturn:
        """Count instructions under Callgrind: missing."""
        raise NotImplementedError("Timer.collect_callgrind: weft does not count instructions")

    def _blocks(
        self, enough: Callable[[list[float]], bool], callback: Callback | None, min_run_time: float
    ) -> Measurement:
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times: list[float] = []
            while not enough(times):
                times.append(self._timer.timeit(number))
                if callback is not None:
                    callback(number, times[-1])
        return self._measurement(number, times)

    def _block_size(self, min_run_time: float) -> int:
        """Return the smallest power of ten of runs against which reading the clock is nothing; warms up, too."""
        clock_cost = min(timeit.repeat(self._clock, repeat=5, number=10)) / 10
        number = 1
        while True:
            seconds = self._timer.timeit(number)
            if seconds >= max(clock_cost / MAX_CLOCK_OVERHEAD, min_run_time * MIN_BLOCK_FRACTION):
                return number
            if seconds >= min_run_time > 0:
                return number
            number *= 10

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)


LOOK = "_look"


def looked_at(stmt: str) -> str:
    """Return the statement, with the value of the expression it ends with handed to the function `LOOK`."""
    tree = ast.parse(stmt)
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        return stmt
    last = tree.body[-1]
    last.value = ast.Call(ast.Name(LOOK, ast.Load()), [last.value], [])
    return ast.unparse(ast.fix_missing_locations(tree))


def dedent(code: str) -> str:
    return textwrap.dedent(code).removeprefix("\n").rstrip()
