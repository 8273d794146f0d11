"""Queues between processes, `torch.multiprocessing.queue`: Python's, which take tensors as they are."""

from __future__ import annotations

import multiprocessing.queues
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection whose `send` and `recv` pickle as multiprocessing does, so that tensors are shared."""

    def __init__(self, conn: Any):
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object."""
        self.conn.send_bytes(ForkingPickler.dumps(obj))

    def recv(self) -> Any:
        """Wait for an object and return it."""
        return ForkingPickler.loads(self.conn.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


class Queue(multiprocessing.queues.Queue):
    """Python's queue; `ctx=torch.multiprocessing.get_context()` says of which start method."""


class SimpleQueue(multiprocessing.queues.SimpleQueue):
    """Python's simple queue; `ctx` as for `Queue`."""
