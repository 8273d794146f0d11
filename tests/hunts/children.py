"""Child processes that answer requests within a time limit: what crashes or hangs costs a child, not the hunt."""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
import time
from typing import Any

_LENGTH = struct.Struct("<q")
_START_SECONDS = 120  # a child imports its library first, which takes seconds on a busy machine


class Died(Exception):
    """The child ended instead of answering: how it ended."""


class Silent(Exception):
    """The child did not answer in time, and was killed."""


def serve(answer: Any) -> None:
    """The child's side: answer pickled requests from stdin until it ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with answers
    _write(answers, "ready")
    while header := requests.read(_LENGTH.size):
        request = pickle.loads(requests.read(*_LENGTH.unpack(header)))
        _write(answers, answer(request))


def _write(stream: Any, value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


class Child:
    """A process that runs `command`, a program that calls `serve`. It is started again after it died or was killed."""

    def __init__(self, command: list[str]):
        self.command = command
        self.process: subprocess.Popen | None = None

    def send(self, request: Any) -> None:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._read(_START_SECONDS)
        try:
            _write(self.process.stdin, request)
        except BrokenPipeError:
            pass  # receive() says how the child ended

    def receive(self, seconds: float) -> Any:
        """The answer to the last request. Raises: Died; Silent after `seconds`."""
        return self._read(seconds)

    def _read(self, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        size = _LENGTH.unpack(self._bytes(_LENGTH.size, deadline))[0]
        return pickle.loads(self._bytes(size, deadline))

    def _bytes(self, size: int, deadline: float) -> bytes:
        assert self.process is not None and self.process.stdout is not None
        stream, data = self.process.stdout.fileno(), b""
        while len(data) < size:
            if not select.select([stream], [], [], max(deadline - time.monotonic(), 0))[0]:
                self.close()
                raise Silent
            more = os.read(stream, size - len(data))
            if not more:
                code = self.process.wait()
                self.close()
                raise Died(f"exit status {code}")
            data += more
        return data

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None
