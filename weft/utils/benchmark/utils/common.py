"""What was measured (`TaskSpec`), how long it took (`Measurement`), and how times are written."""

import textwrap
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

import weft

__all__ = [
    "Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english",
]  # fmt: skip

T = TypeVar("T", bound=Hashable)

# The clock and the interpreter's loop are not known better than this, however small the spread.
CLOCK_RESOLUTION = 25e-9  # seconds
MAX_SIGNIFICANT_FIGURES = 4
SUSPECT_SPREAD, GROSS_SPREAD = 0.1, 0.25  # interquartile range / median

UNITS = {
    "ns": ("nanosecond", 1e-9),
    "us": ("microsecond", 1e-6),
    "ms": ("millisecond", 1e-3),
    "s": ("second", 1),
}


def log10(x: float) -> float:
    """Return the logarithm rounded to float32, as PyTorch takes it: powers of ten are exact, so 0.001 is in ms."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # NumPy's own float32 logarithm is one ulp off at 0.001.
        return float(np.float32(np.log10(np.float64(np.float32(x)))))


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which `t` seconds are a number between 1 and 1000, and that unit in seconds.

    >>> select_unit(2.5e-5)
    ('us', 1e-06)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(log10(t) // 3), "s")
    return unit, UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """Return the name of a unit of time.

    >>> unit_to_english("us")
    'microsecond'
    """
    return UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """Round `x` to `n` significant figures, in float32.

    >>> round(trim_sigfig(3.14159, 2), 6)
    3.1
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (int(np.ceil(log10(abs(x)))) - n)
    return float(np.round(np.float32(x / scale)) * np.float32(scale))


def ordered_unique(elements: Iterable[T]) -> list[T]:
    """Return the distinct elements, in order of first appearance.

    >>> ordered_unique("banana")
    ['b', 'a', 'n']
    """
    return list(dict.fromkeys(elements))


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """What a `Timer` runs, apart from its globals; measurements of equal specs are replicates."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Return the label, or failing that the statement, followed by the sub_label."""
        if self.label is None and "\n" in self.stmt:
            heading = f"stmt: ({self.sub_label})" if self.sub_label else "stmt:"
            return f"{heading}\n{textwrap.indent(self.stmt, '  ')}"
        heading = self.stmt if self.label is None else self.label
        return f"{heading}: {self.sub_label}" if self.sub_label else heading

    def setup_str(self) -> str:
        """Return the setup code under a heading; empty if there is none."""
        if self.setup in ("", "pass"):
            return ""
        return (
            f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"
        )

    def summarize(self) -> str:
        """Title, description and setup, as they head the printed `Measurement`."""
        sections = filter(None, (self.title, self.description, self.setup_str()))
        return "\n".join(f"{section}\n" if "\n" in section else section for section in sections)


TASK_FIELDS = {field.name for field in fields(TaskSpec)}


@dataclass(repr=False)
class Measurement:
    """The times of one or more blocks of `number_per_run` runs each of one statement.

    Units: seconds; `raw_times` per block, everything else per run. The fields of `task_spec` are attributes
    as well.

    >>> m = Measurement(10, [1e-3, 2e-3, 3e-3], TaskSpec("x + y", "pass"))
    >>> m.median, m.stmt
    (0.0002, 'x + y')
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in TASK_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def env(self) -> str | None:
        """Return the environment that the statement ran in."""
        return self.task_spec.env

    @property
    def times(self) -> list[float]:
        """Seconds per run, one for each block."""
        return [t / self.number_per_run for t in self.raw_times]

    @cached_property
    def _quartiles(self) -> tuple[float, float, float]:
        if not self.raw_times:
            return -1.0, -1.0, -1.0  # PyTorch's sign for "nothing was measured"
        low, median, high = np.quantile(self.times, (0.25, 0.5, 0.75)).tolist()
        return low, median, high

    @property
    def median(self) -> float:
        return self._quartiles[1]

    @property
    def mean(self) -> float:
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """Return the interquartile range: the spread of the middle half of the times."""
        low, _, high = self._quartiles
        return high - low

    @property
    def significant_figures(self) -> int:
        """Return how many figures of the median the spread of the middle half of the times supports, from 1 to 4.

        The error of the median is taken as the 90 % confidence interval of a normal mean (z = 1.645), and at
        least 25 ns.
        """
        n = len(self.raw_times)
        middle = np.array(sorted(self.times)[n // 4 : -(-3 * n // 4)], dtype=np.float32)
        error = max(1.645 * float(middle.std()) / float(np.sqrt(np.float32(len(middle)))), CLOCK_RESOLUTION)
        figures = int(np.floor(log10(self.median / error)))
        return min(max(figures, 1), MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """True if the times spread suspiciously much."""
        return bool(self.raw_times) and not self.meets_confidence()

    def meets_confidence(self, threshold: float = SUSPECT_SPREAD) -> bool:
        """True if the interquartile range is below `threshold` times the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """Return the name of this measurement's row in a `Compare` table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n, (low, median, high) = len(self.raw_times), self._quartiles
        unit, scale = select_unit(median)
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if n > 1 else ''}{median / scale:.2f} {unit}")
        if n >= 4:
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        # The space before the comma of a single measurement is PyTorch's.
        runs = f"{self.number_per_run} runs {'per measurement,' if n > 1 else ','}"
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}, {runs} {threads}")
        if self.has_warnings:
            lines += self._warning()
        return "\n".join(lines)

    def _warning(self) -> list[str]:
        gross = not self.meets_confidence(GROSS_SPREAD)
        cause = (
            "suggests significant environmental influence" if gross else "could indicate system fluctuation"
        )
        spread = f"{self.iqr / self.median * 100:.1f}%"
        return [
            f"  WARNING: Interquartile range is {spread} of the median measurement.",
            f"           This {cause}.",
        ]

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> list["Measurement"]:
        """Join the measurements of equal `TaskSpec`s; the result has one run per block and no metadata."""
        times: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            times.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, joined, task_spec) for task_spec, joined in times.items()]


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute with `n` threads inside the `with` block."""
    before = weft.get_num_threads()
    weft.set_num_threads(n)
    try:
        yield
    finally:
        weft.set_num_threads(before)
