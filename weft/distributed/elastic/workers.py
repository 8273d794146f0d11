"""The processes that torchrun starts: they run until all have ended, or one has failed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from .multiprocessing.errors import ChildFailedError, ProcessFailure

GRACE_S = 30.0  # seconds from SIGTERM to SIGKILL
STDOUT, STDERR = 1, 2  # what is redirected or copied: a sum of these


@dataclass
class Job:
    """What to start: `count` processes of one command, of which each also gets the arguments `own(local_rank)`."""

    command: Sequence[str]
    count: int
    environment: Mapping[str, str]
    name: str = "program"
    role: str = "default"
    log_dir: Path | None = None
    redirects: Mapping[int, int] = field(default_factory=dict)  # by local rank
    tee: Mapping[int, int] = field(default_factory=dict)
    shown: frozenset[int] | None = None  # the local ranks whose output is shown; None means all
    grace_s: float = GRACE_S
    tell_rank: bool = False  # whether a process gets the argument --local-rank

    def variables(self, local_rank: int, error_file: Path) -> dict[str, str]:
        """The environment of a process."""
        ranks = dict.fromkeys(("LOCAL_RANK", "RANK", "ROLE_RANK"), str(local_rank))
        sizes = dict.fromkeys(("LOCAL_WORLD_SIZE", "WORLD_SIZE", "ROLE_WORLD_SIZE"), str(self.count))
        own = {"GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_NAME": self.role}
        return {**self.environment, **ranks, **sizes, **own, "TORCHELASTIC_ERROR_FILE": str(error_file)}


class Workers:
    """The processes of a job, which are started when this is made."""

    def __init__(self, job: Job, folder: Path):
        self.job = job
        self.folder = folder
        self.copiers: list[threading.Thread] = []
        self.files: list[IO[Any]] = []
        self.processes: list[subprocess.Popen] = []
        try:
            for local_rank in range(job.count):
                self.processes.append(self._start(local_rank))
        except BaseException:
            self.stop()
            raise

    def _start(self, local_rank: int) -> subprocess.Popen:
        place = self.folder / str(local_rank)
        place.mkdir(parents=True, exist_ok=True)
        command = [*self.job.command]
        if self.job.tell_rank:
            command.append(f"--local-rank={local_rank}")
        process = subprocess.Popen(
            command,
            env=self.job.variables(local_rank, place / "error.json"),
            stdout=self._output(local_rank, STDOUT, place / "stdout.log"),
            stderr=self._output(local_rank, STDERR, place / "stderr.log"),
        )
        for stream, name, shown in (
            (process.stdout, "stdout.log", sys.stdout),
            (process.stderr, "stderr.log", sys.stderr),
        ):
            if stream is not None:
                self._copy(local_rank, stream, place / name, shown)
        return process

    def _output(self, local_rank: int, which: int, path: Path) -> Any:
        """Where a process writes: where this process does, into a file, or into a pipe whose content is copied to both."""
        if self.job.tee.get(local_rank, 0) & which:
            return subprocess.PIPE
        hidden = self.job.shown is not None and local_rank not in self.job.shown
        if self.job.redirects.get(local_rank, 0) & which or hidden:
            self.files.append(path.open("wb"))
            return self.files[-1]
        return None

    def _copy(self, local_rank: int, stream: IO[bytes], path: Path, shown: Any) -> None:
        prefix = f"[{self.job.role}{local_rank}]:"
        hidden = self.job.shown is not None and local_rank not in self.job.shown

        def copy() -> None:
            with path.open("wb") as file:
                for line in stream:
                    file.write(line)
                    file.flush()
                    if not hidden:
                        print(prefix + line.decode(errors="replace"), end="", file=shown, flush=True)

        self.copiers.append(threading.Thread(target=copy, daemon=True))
        self.copiers[-1].start()

    def wait(self) -> dict[int, ProcessFailure]:
        """The failures by rank, the first one first, once all processes have ended or one has failed; the others are then stopped."""
        ended: SimpleQueue[int] = SimpleQueue()

        def watch(rank: int, process: subprocess.Popen) -> None:
            process.wait()
            ended.put(rank)

        for rank, process in enumerate(self.processes):
            threading.Thread(target=watch, args=(rank, process), daemon=True).start()
        for _ in self.processes:
            rank = ended.get()
            code = self.processes[rank].returncode
            if code:
                failures = {rank: self._failure(rank, code)}
                self.stop()
                return failures
        self._end_copying()
        return {}

    def _failure(self, rank: int, code: int) -> ProcessFailure:
        return ProcessFailure(
            rank, self.processes[rank].pid, code, str(self.folder / str(rank) / "error.json")
        )

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End all processes: by a signal, and those that do not heed it by SIGKILL."""
        alive = [process for process in self.processes if process.poll() is None]
        for process in alive:
            process.send_signal(number)
        end = time.monotonic() + self.job.grace_s
        for process in alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0.01))
            if process.poll() is None:
                process.kill()
                process.wait()
        self._end_copying()

    def _end_copying(self) -> None:
        for copier in self.copiers:
            copier.join(1.0)
        for file in self.files:
            file.close()


class Stopped(BaseException):
    """A signal that ends all processes has come."""

    def __init__(self, number: int):
        self.number = number


@contextlib.contextmanager
def stopping_on(numbers: Sequence[int]) -> Iterator[None]:
    """Within, these signals raise Stopped."""

    def stop(number: int, frame: Any) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_until_done(job: Job, folder: Path, restarts: int, signals: Sequence[int]) -> None:
    """Run a job, again up to `restarts` times if a process fails.

    Raises: ChildFailedError with the failures of the last time, Stopped if a signal has come.
    """
    with stopping_on(signals):
        for attempt in range(restarts + 1):
            count = {"TORCHELASTIC_RESTART_COUNT": str(attempt), "TORCHELASTIC_MAX_RESTARTS": str(restarts)}
            job.environment = {**os.environ, **job.environment, **count}
            workers = Workers(job, folder / f"attempt_{attempt}")
            try:
                failures = workers.wait()
            except BaseException as error:
                workers.stop(error.number if isinstance(error, Stopped) else signal.SIGTERM)
                raise
            if not failures:
                return
    raise ChildFailedError(job.name, failures)
