"""What a program of this folder runs with: an implementation, sizes that it has not met, and a clock."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")

# The sizes of a program are divided into parts. Warm-ups, and the run that fills the kernel cache, use other
# sizes than the run that is measured.
OTHER, MEASURED = 0, 1


@dataclass(frozen=True)
class Setting:
    torch: Any  # PyTorch or weft
    part: int  # OTHER or MEASURED
    share: float = 1.0  # of the items that a full run has
    look: Callable[[Any], None] = lambda value: None  # returns when the results of all calls exist

    def count(self, full: int) -> int:
        """How many items this run has, of `full`."""
        return max(2, round(full * self.share))

    def seconds(self, run: Callable[[Item], Any], items: Sequence[Item]) -> tuple[float, list[Any]]:
        """The seconds of `run` for one of the items, until its results exist, and the results."""
        start = time.perf_counter()
        results = [run(item) for item in items]
        self.look(results)
        return (time.perf_counter() - start) / len(items), results


@dataclass(frozen=True)
class Measured:
    """What a program reports."""

    values: dict[str, float]  # seconds or bytes; a program with a single value has the name ""
    # Numbers that both implementations compute alike, so that a test can compare the programs.
    results: list[float]
    errors: dict[str, str]  # by the names of values that there are not

    @classmethod
    def single(cls, value: float, results: Sequence[float] = ()) -> "Measured":
        return cls({"": value}, [float(result) for result in results], {})
