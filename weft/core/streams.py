"""Streams and events: `torch.Stream`, `torch.Event`.

A device does all of its work in the order in which it is given. So a stream is a name for it, and waiting for another stream or for an
event changes nothing. On the CPU work is complete when the call returns.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any

from .device import CPU, NUMBERS, PRIVATE, accelerator, as_device, device
from .restoring import Restoring

_ids = itertools.count(1)  # of streams; 0 is the default stream of each device


class _Current(threading.local):
    def __init__(self) -> None:
        self.streams: dict[device, Stream] = {}


_current = _Current()


class Stream(Restoring):
    """A queue of work on one device. All streams of a device are one queue.

    Raises: NotImplementedError for a device without streams.

    >>> import weft as torch
    >>> torch.Stream(device="cpu").query()
    True
    """

    waits = False  # whether work is given elsewhere, so that the device must wait before and after this stream is used

    def __init__(
        self, device: Any = None, *, priority: int = 0, stream_id: int | None = None, **options: Any
    ):
        self.device = place_of(device, "Stream")
        self.priority = priority
        new = 0 if self.device is CPU else next(_ids)
        self.stream_id = new if stream_id is None else stream_id
        self.device_type = NUMBERS.get(self.device.type, NUMBERS[PRIVATE])
        self.device_index = -1 if self.device.index is None else self.device.index
        # The stream to return to, and what this was before: from the innermost `with` outwards.
        self._outer: Any = None

    def query(self) -> bool:
        """Whether all work is complete."""
        if self.waits:
            self.synchronize()
        return self.device is CPU or self.device.backend.mark().is_done()

    def synchronize(self) -> None:
        """Wait until all work is complete."""
        if self.device is not CPU:
            self.device.backend.synchronize()

    def is_capturing(self) -> bool:
        """Whether the work of the device is being captured into a graph."""
        return self.device is not CPU and self.device.backend.capture is not None

    def wait_event(self, event: Event) -> None:
        """Wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Wait for the work of another stream."""
        if stream.waits or self.waits:
            stream.device.backend.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, or a new one.

        Raises: RuntimeError on the CPU, as PyTorch does.
        """
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def native_handle(self) -> int:
        """The stream of the driver: 0, the default stream.

        Raises: RuntimeError on the CPU, which has none.
        """
        if self.device is CPU:
            raise RuntimeError("Backend doesn't support getting stream native handle.")
        return 0

    def __enter__(self) -> Stream:
        outer = current_stream(self.device)
        _wait_between(outer, self)
        self._outer = outer, self._outer
        _current.streams[self.device] = self
        return self

    def _restore(self) -> None:
        if self._outer is not None:
            _current.streams[self.device], self._outer = self._outer
            _wait_between(self, _current.streams[self.device])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and other.device == self.device and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )


def current_stream(where: device, make: type[Stream] = Stream) -> Stream:
    """The stream that this thread has chosen for a device, as an object of the class `make`; else the default stream."""
    found = _current.streams.get(where)
    if isinstance(found, make):
        return found
    return named_stream(where, 0 if found is None else found.stream_id, make)


def named_stream(where: device, stream_id: int, make: type[Stream] = Stream) -> Stream:
    """The stream of a device with this number."""
    stream = make(where)
    stream.stream_id = stream_id
    return stream


def set_stream(stream: Stream) -> None:
    """Let this be the current stream of its device in this thread."""
    _wait_between(_current.streams.get(stream.device, stream), stream)
    _current.streams[stream.device] = stream


def _wait_between(before: Stream, after: Stream) -> None:
    if before.waits or after.waits:
        after.device.backend.synchronize()


class Event:
    """A point in the work of a device. As in PyTorch, the CPU cannot record events, but queries work.

    Raises: NotImplementedError for a device without events.
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
        self.device = place_of(device, "Event")
        self.enable_timing = enable_timing
        self._mark: Any = None  # see `Backend.mark`

    def query(self) -> bool:
        """Whether the work before the event is complete. Of an event that was not recorded it is."""
        return self._mark is None or self._mark.is_done()

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self._mark is not None:
            self._mark.wait()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait for the work before the event."""
        if stream is not None and stream.waits:
            self.synchronize()

    def record(self, stream: Stream | None = None) -> None:
        """Let the event stand for all work that was given before.

        Raises: RuntimeError on the CPU, as PyTorch does, and for a stream of another device.
        """
        if self.device is CPU:
            raise RuntimeError("cpu backend doesn't support events.")
        if stream is not None and stream.device != self.device:
            raise RuntimeError(
                f"Event device {self.device} does not match recording stream's device {stream.device}."
            )
        if stream is not None and stream.waits:
            stream.synchronize()
        self._mark = self.device.backend.mark()

    def elapsed_time(self, end_event: Event) -> float:
        """The time until another event in milliseconds.

        Raises: RuntimeError on the CPU, and before both are complete; ValueError for events that were not recorded, or without timing.
        """
        if self.device is CPU:
            raise RuntimeError("cpu backend doesn't support elapsedTime: both events must be recorded first.")
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._mark is None or end_event._mark is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return self._mark.until(end_event._mark)

    def ipc_handle(self) -> bytes:
        """A handle for another process.

        Raises: NotImplementedError.
        """
        raise NotImplementedError("torch.Event ipc is not supported yet")

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:
        """The event of a handle of another process.

        Raises: NotImplementedError.
        """
        raise NotImplementedError("torch.Event ipc is not supported yet")

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return f"torch.Event device_type={self.device.type}, device_index={index}, event_flag=0, event_id=0"


def place_of(where: Any, kind: str) -> device:
    """The device of a stream or an event: the accelerator, or the CPU without one, unless it is given."""
    found = as_device(accelerator() or "cpu") if where is None else as_device(where)
    if found is not CPU and not found.backend.has_events:
        raise NotImplementedError(f"torch.{kind}: device {found} has no streams and events")
    return found
