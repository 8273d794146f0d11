"""`Reader`: the process in which the cells of one reader of the tour run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from typing import Any

PATIENCE = 2.0  # seconds until a cell that does not react to Ctrl-C is killed: in a kernel, or because it catches everything


class Reader:
    """Runs cells one after the other in a process of its own, so that an endless loop can be stopped."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._turn = threading.Lock()  # held while a cell runs
        self._idle = threading.Event()
        self._idle.set()

    def run(self, code: str) -> Generator[dict[str, Any], None, None]:
        """The events of a cell, see `worker.py`. The last one is `{"done": true}`."""
        with self._turn:
            self._idle.clear()
            try:
                yield from self._events(code)
            finally:
                self._idle.set()

    def _events(self, code: str) -> Generator[dict[str, Any], None, None]:
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps({"code": code}) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                event = json.loads(line)
                yield event
                if "done" in event:
                    return
        except (OSError, ValueError):  # the process has just ended, in the middle of a line perhaps
            pass
        except GeneratorExit:  # nobody reads the answers any more, so the next cell needs a new process
            self._kill()
            raise
        status = process.wait()
        self._kill()
        yield {
            "error": f"The process of the cells ended ({_described(status)}). Its variables are gone; run the cells above again."
        }
        yield {"done": True}

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._kill()
            # A session of its own, because Ctrl-C in the terminal is for the server.
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        return self._process

    def stop(self) -> None:
        """Stop the cell that runs, if one does. Its process is killed if it does not react."""
        process = self._process
        if self._idle.is_set() or process is None:
            return
        if os.name == "posix":
            process.send_signal(signal.SIGINT)
            if self._idle.wait(PATIENCE):
                return
        process.kill()

    def close(self) -> None:
        """End the process."""
        self._kill()

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:  # of what was not written yet
                        pass


def _described(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
