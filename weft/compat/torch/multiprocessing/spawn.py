"""Running one function in several processes, with the first error among them raised here."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any


class ProcessException(Exception):
    """A process failed; `error_index` says which one, `error_pid` is its number in the system."""

    def __init__(self, msg: str, error_index: int, error_pid: int):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = self.pid = error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended with an exception."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code, or was killed by a signal."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


class ProcessContext:
    """The processes that `start_processes` started."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[Any]):
        self.processes = list(processes)
        self.error_queues = list(error_files)  # the reading end of a pipe for each process
        self.sentinels = {process.sentinel: index for index, process in enumerate(self.processes)}

    def pids(self) -> list[int]:
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends; whether all of them have.

        Once one has failed, the others are terminated: killed, if they still run after `grace_period` seconds.
        Units: seconds. Raises: ProcessRaisedException or ProcessExitedException for the first failure.
        """
        if not self.sentinels:
            return True
        # A long message does not fit into the pipe: its process cannot end before it is read.
        signs: dict[Any, int] = {
            **self.sentinels,
            **{self.error_queues[index]: index for index in self.sentinels.values()},
        }
        ready = multiprocessing.connection.wait(list(signs), timeout)
        for index in dict.fromkeys(signs[each] for each in ready):
            process, error = self.processes[index], self.error_queues[index]
            del self.sentinels[process.sentinel]
            message = _said(error)
            process.join()
            if process.exitcode:
                self._stop(grace_period)
                raise self._failure(index, message)
        return not self.sentinels

    def _stop(self, grace_period: float | None) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + (30.0 if grace_period is None else grace_period)
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _failure(self, index: int, message: str | None) -> ProcessException:
        process = self.processes[index]
        if message is not None:
            message = f"\n\n-- Process {index} terminated with the following error:\n{message}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code >= 0:
            message = f"process {index} terminated with exit code {code}"
            return ProcessExitedException(message, index, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        message = f"process {index} terminated with signal {name}"
        return ProcessExitedException(message, index, process.pid, code, name)


class SpawnContext(ProcessContext):
    """The processes that `spawn` started."""


def _said(error: Any) -> str | None:
    """What a process told before it ended."""
    try:
        return error.recv() if error.poll() else None
    except EOFError:
        return None


def _run(fn: Callable, index: int, args: tuple, error: Any) -> None:
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and says so
    except Exception:
        error.send(traceback.format_exc())
        sys.exit(1)


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call fn(index, *args) in `nprocs` processes, wait until all end, or give their ProcessContext.

    Raises: what `ProcessContext.join` raises.
    """
    return _start(ProcessContext, fn, args, nprocs, join, daemon, start_method)


def _start(
    kind: type[ProcessContext],
    fn: Callable,
    args: tuple,
    nprocs: int,
    join: bool,
    daemon: bool,
    start_method: str,
) -> ProcessContext | None:
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for index in range(nprocs):
        reading, writing = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, index, args, writing), daemon=daemon)
        process.start()
        writing.close()
        processes.append(process)
        errors.append(reading)
    started = kind(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with new interpreters: `fn` and `args` must be picklable, `fn` found by its module and name."""
    return _start(SpawnContext, fn, args, nprocs, join, daemon, start_method)
