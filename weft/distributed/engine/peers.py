"""The processes of a group: whether one has ended."""

from __future__ import annotations

import contextlib
import os
import select
from typing import Any


class Peer:
    """Another process of this machine, which runs while this object is made."""

    def __init__(self, pid: int):
        self.pid = pid
        self._descriptor = -1
        with contextlib.suppress(AttributeError, OSError):  # an older system has no descriptors of processes
            self._descriptor = os.pidfd_open(pid)

    def has_ended(self) -> bool:
        """Whether the process has ended. One that its parent has not waited for yet counts."""
        if self._descriptor >= 0:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            return bool(poll.poll(0))
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
        except OSError:
            return True

    def __del__(self, close: Any = os.close) -> None:
        if self._descriptor >= 0:
            close(self._descriptor)
