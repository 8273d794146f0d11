"""Streams and events of the CPU, where all operations are synchronous: `torch.Stream`, `torch.Event`."""

from __future__ import annotations

from typing import Any, NoReturn

from .device import CPU, as_device, device
from .restoring import Restoring


class Stream(Restoring):
    """A queue of work on one device. On the CPU, work is complete when the call returns, so waiting does nothing.

    Raises: NotImplementedError for another device than the CPU.

    >>> import weft as torch
    >>> torch.Stream(device="cpu").query()
    True
    """

    device_type = 0
    device_index = -1
    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0, **options: Any):
        self.device = _cpu(device, "Stream")

    def query(self) -> bool:
        """Whether all work is complete. Always True."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is complete."""

    def is_capturing(self) -> bool:
        """Whether a graph is being captured. Always False."""
        return False

    def wait_event(self, event: Event) -> None:
        """Wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Wait for the work of another stream."""

    def record_event(self, event: Event | None = None) -> NoReturn:
        """Record an event.

        Raises: RuntimeError, as PyTorch does on the CPU.
        """
        raise RuntimeError("cpu backend doesn't support events.")

    def native_handle(self) -> NoReturn:
        """The stream of a driver.

        Raises: RuntimeError, because the CPU has none.
        """
        raise RuntimeError("Backend doesn't support getting stream native handle.")

    def __enter__(self) -> Stream:
        return self

    def _restore(self) -> None:
        pass

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device}, device_index=-1, stream_id=0"


class Event:
    """A point in the work of a stream. As in PyTorch, the CPU cannot record events, but queries work.

    Raises: NotImplementedError for another device than the CPU.
    """

    event_id = 0

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ):
        self.device = _cpu(device, "Event")

    def query(self) -> bool:
        """Whether the work before the event is complete. Always True."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before the event."""

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the work before the event."""

    def record(self, stream: Stream | None = None) -> NoReturn:
        """Record the event.

        Raises: RuntimeError, as PyTorch does on the CPU.
        """
        raise RuntimeError("cpu backend doesn't support events.")

    def elapsed_time(self, end_event: Event) -> NoReturn:
        """The time until another event in milliseconds.

        Raises: RuntimeError, because events of the CPU cannot be recorded.
        """
        raise RuntimeError("cpu backend doesn't support elapsedTime: both events must be recorded first.")

    def ipc_handle(self) -> NoReturn:
        """A handle for another process.

        Raises: NotImplementedError, because the CPU has none.
        """
        raise NotImplementedError("torch.Event ipc is not supported yet")

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> NoReturn:
        """The event of a handle of another process.

        Raises: NotImplementedError, because the CPU has none.
        """
        raise NotImplementedError("torch.Event ipc is not supported yet")

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device}, device_index=-1, event_flag=0, event_id=0"


def _cpu(where: Any, kind: str) -> device:
    found = CPU if where is None else as_device(where)
    if found.type != "cpu":
        raise NotImplementedError(
            f"torch.{kind} on device {found}: this version of weft computes on the CPU only"
        )
    return found
