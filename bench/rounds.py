"""Measuring cases: every implementation in its own process, taking turns."""

import json
import os
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

from bench.cases import Case, Section

ROOT = Path(__file__).resolve().parents[1]
MAX_WAIT = 2.0  # seconds, for the threads of a worker to go to sleep
MEMORY_NOISE = 2**20  # bytes: a smaller growth says nothing and counts as this much


@dataclass
class Row:
    """A line of the report: a value, or the reason why there is none, for each implementation."""

    section: str
    name: str
    unit: str  # "s" or "bytes"
    floor: float | None = None  # the least ratio wanted
    most: float | None = None  # the largest value of weft wanted, in units
    values: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.section}/{self.name}"

    @property
    def ratio(self) -> float | None:
        """PyTorch's value over weft's: above 1, weft is better."""
        if "torch" in self.values and "weft" in self.values:
            return self.values["torch"] / self.values["weft"]
        return None

    @property
    def met(self) -> bool | None:
        """Whether weft reaches what is wanted; None if nothing is, or if it is not known."""
        if self.most is not None:
            return self.values["weft"] <= self.most if "weft" in self.values else None
        if self.floor is None or self.ratio is None:
            return None
        return self.ratio >= self.floor


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    seconds: float  # per turn
    budget: float  # seconds; slow statements get fewer rounds, so that one implementation's turns fit into it
    fewest: int  # rounds, whatever they take

    def rounds_of(self, turn: float) -> int:
        """How many rounds a case gets of which the slowest turn takes so many seconds."""
        return max(self.fewest, min(self.rounds, int(self.budget / turn)))


FULL = Effort(rounds=7, seconds=0.04, budget=0.6, fewest=3)
QUICK = Effort(rounds=3, seconds=0.01, budget=0.1, fewest=1)


class Failed(Exception):
    """An implementation could not do what was asked; the message says why."""


class Worker:
    """A process with one implementation in it."""

    def __init__(self, implementation: str) -> None:
        self.implementation = implementation
        self._start()

    def _start(self) -> None:
        command = [sys.executable, "-m", "bench.worker", self.implementation]
        # torch.compile would keep a pool of processes, and its C++ compiler and XLA print warnings.
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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


def measure(case: Case, section: Section, workers: Mapping[str, Worker], effort: Effort) -> Row:
    """The row of a case; time is measured in `workers`, memory in fresh ones."""
    able = {
        name: workers[name] for name in section.implementations if name in workers and can_run(name, case)
    }
    row = Row(section.key, case.name, "bytes" if case.measure == "memory" else "s", section.floor)
    return (
        memory(row, case, able)
        if case.measure == "memory"
        else timing(row, case, able, effort, section.share)
    )


def can_run(implementation: str, case: Case) -> bool:
    match implementation:
        case "numpy" | "jax":
            return case.numpy is not None
        case "compiled":
            return bool(case.compiled)
        case "limit":
            return case.traffic is not None
        case _:
            return True


def timing(row: Row, case: Case, workers: Mapping[str, Worker], effort: Effort, share: float) -> Row:
    turns, slowest = {}, effort.seconds * share
    for implementation, worker in workers.items():
        try:
            prepared = worker.ask(prepare=asdict(case), seconds=effort.seconds * share)
        except Failed as failure:
            row.errors[implementation] = str(failure)
        else:
            turns[implementation] = partial(worker.value, time=prepared["runs"])
            slowest = max(slowest, prepared["turn"])
    return take_turns(row, turns, effort.rounds_of(slowest))


def memory(row: Row, case: Case, implementations: Iterable[str]) -> Row:
    def growth(implementation: str) -> float:
        with Worker(implementation) as fresh:
            return max(fresh.value(memory=asdict(case)), MEMORY_NOISE)

    return take_turns(row, {name: partial(growth, name) for name in implementations}, rounds=1)
