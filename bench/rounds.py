"""Measuring cases: every implementation in its own process, taking turns."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.cases import Case

ROOT = Path(__file__).resolve().parents[1]
MAX_WAIT = 2.0  # seconds, for the threads of a worker to go to sleep
MEMORY_NOISE = 2**20  # bytes: a smaller growth says nothing and counts as this much


@dataclass
class Row:
    """A line of the report: a value, or the reason why there is none, for each implementation."""

    id: str
    unit: str  # "s" or "bytes"
    target: float | None
    values: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """PyTorch's value over weft's: above 1, weft is better."""
        if "torch" in self.values and "weft" in self.values:
            return self.values["torch"] / self.values["weft"]
        return None

    @property
    def met(self) -> bool | None:
        """Whether weft reaches the target; None if that is not known."""
        if self.target is None or self.ratio is None:
            return None
        return self.ratio >= self.target


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    seconds: float  # per turn


FULL = Effort(rounds=7, seconds=0.05)
QUICK = Effort(rounds=3, seconds=0.01)


class Failed(Exception):
    """An implementation could not do what was asked; the message says why."""


class Worker:
    """A process with one implementation in it."""

    def __init__(self, implementation: str) -> None:
        self.implementation = implementation
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "bench.worker", self.implementation]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Give the worker a turn, which ends when all its threads sleep; Failed if it could not answer."""
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self._start()  # the next case gets its chance
            raise Failed(f"the process ended with status {status}")
        self._wait_for_sleep()
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def value(self, **request: Any) -> float:
        """`ask` for a measurement."""
        return self.ask(**request)["value"]

    def _wait_for_sleep(self) -> None:
        """Return once no thread of the worker runs: PyTorch's spin for a while after their work is done."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        if not tasks.exists():
            time.sleep(0.3)
            return
        deadline = time.monotonic() + MAX_WAIT
        while any(state(task) == "R" for task in tasks.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.001)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()  # the end of the requests is the end of the worker
        self.process.wait()
        self.process.stdout.close()


def state(task: Path) -> str:
    """The state of a thread, "R" while it runs; empty if it has ended."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def take_turns(row: Row, turns: Mapping[str, Callable[[], float]], rounds: int) -> Row:
    """Fill `row` with the median over `rounds` of each implementation's turns, interleaved."""
    values: dict[str, list[float]] = {}
    for _ in range(rounds):
        for implementation, turn in turns.items():
            if implementation in row.errors:
                continue
            try:
                values.setdefault(implementation, []).append(turn())
            except Failed as failure:
                row.errors[implementation] = str(failure)
    row.values = {
        implementation: statistics.median(v)
        for implementation, v in values.items()
        if implementation not in row.errors
    }
    return row


def measure(case: Case, workers: dict[str, Worker], effort: Effort) -> Row:
    """The row of a case; time is measured in `workers`, memory in fresh ones."""
    if case.numpy is None:
        workers = {implementation: w for implementation, w in workers.items() if implementation != "numpy"}
    return memory(case, workers) if case.measure == "memory" else timing(case, workers, effort)


def timing(case: Case, workers: dict[str, Worker], effort: Effort) -> Row:
    row = Row(case.id, "s", case.target)
    turns = {}
    for implementation, worker in workers.items():
        try:
            runs = worker.ask(prepare=asdict(case), seconds=effort.seconds)["runs"]
        except Failed as failure:
            row.errors[implementation] = str(failure)
        else:
            turns[implementation] = partial(worker.value, time=runs)
    return take_turns(row, turns, effort.rounds)


def memory(case: Case, implementations: Iterable[str]) -> Row:
    def growth(implementation: str) -> float:
        with Worker(implementation) as fresh:
            return max(fresh.value(memory=asdict(case)), MEMORY_NOISE)

    row = Row(case.id, "bytes", case.target)
    return take_turns(row, {name: partial(growth, name) for name in implementations}, rounds=1)
