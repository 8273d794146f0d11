"""`torch.distributed.elastic.multiprocessing.errors`: how a process tells its launcher why it failed."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .error_handler import ErrorHandler
from .handlers import get_error_handler

__all__ = ["ProcessFailure", "ChildFailedError", "record", "ErrorHandler", "get_error_handler"]


@dataclass
class ProcessFailure:
    """How a process failed: its rank, its number, its exit code and the file with the reason."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        import json
        import time

        self.error_file_data, self.message, self.timestamp = {}, "", int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            if isinstance(self.message, dict):
                self.timestamp = int(self.message.get("extraInfo", {}).get("timestamp", self.timestamp))
        elif self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} received by PID {self.pid}"
        else:
            self.message = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

    def signal_name(self) -> str:
        """The name of the signal that ended the process, or <N/A>."""
        import signal

        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else "<N/A>"

    def timestamp_isoformat(self) -> str:
        from datetime import datetime

        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes that were started have failed: `failures` by rank."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = failures
        assert failures, "at least one process must have failed"
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank and failure that came first."""
        return min(self.failures.items(), key=lambda item: item[1].timestamp)

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """What failed, rank by rank."""
        lines = [f"{self.name} FAILED"]
        for rank, failure in sorted(self.failures.items(), key=lambda item: item[1].timestamp):
            message = failure.message["message"] if isinstance(failure.message, dict) else failure.message
            lines.append(
                f"rank {rank} (local_rank {failure.local_rank}, pid {failure.pid}): exit code {failure.exitcode} "
                f"({failure.signal_name()}) at {failure.timestamp_isoformat()}: {message}"
            )
        width = max(map(len, lines))
        return "\n".join(
            [boarder_delim * width, lines[0], section_delim * width, *lines[1:], boarder_delim * width]
        )


def record(fn: Callable[..., Any], error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Decorate the entry point of a program that torchrun may start: it writes down which exception ended it.

    The file is named by the environment variable TORCHELASTIC_ERROR_FILE; without it nothing is written.

    >>> from weft.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main(x):
    ...     return x + 1
    >>> main(1)
    2
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            # An exit code of another kind than int is as good as none.
            if error.code not in (None, 0):
                handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper
