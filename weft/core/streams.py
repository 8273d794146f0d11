"""Streams and events: `torch.Stream`, `torch.Event`.

A stream is a queue of a device. Work of one stream is done in order, and work of two streams is in no order unless one waits for the other, or
for an event. Each thread has a current stream for each device, which gets the work that the thread gives to the device. The default stream has number 0.
On the CPU work is complete when the call returns.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .device import CPU, NUMBERS, PRIVATE, accelerator, as_device, device
from .restoring import Restoring


class _Current(threading.local):
    def __init__(self) -> None:
        self.streams: dict[device, Stream] = {}


_current = _Current()


class _Chosen:
    """How many choices of threads of a stream that is not the default one are in force."""

    count = 0


chosen = _Chosen()
# Called with a stream after it has become the current one of this thread.
observers: list[Callable[[Stream], object]] = []


class Stream(Restoring):
    """A queue of work on one device.

    Raises: NotImplementedError for a device without streams.

    >>> import weft as torch
    >>> torch.Stream(device="cpu").query()
    True
    """

    def __init__(
        self, device: Any = None, *, priority: int = 0, stream_id: int | None = None, **options: Any
    ):
        self.device = place_of(device, "Stream")
        self.priority = priority
        if stream_id is None:
            stream_id = 0 if self.device is CPU else self.device.backend.new_stream(priority)
        self.stream_id = stream_id
        self.device_type = NUMBERS.get(self.device.type, NUMBERS[PRIVATE])
        self.device_index = -1 if self.device.index is None else self.device.index
        # The stream to return to, and what this was before: from the innermost `with` outwards.
        self._outer: Any = None

    def query(self) -> bool:
        """Whether all work that the stream has been given is complete."""
        return self.device is CPU or self.device.backend.is_idle(self.stream_id)

    def synchronize(self) -> None:
        """Let the host wait until all work that the stream has been given is complete."""
        if self.device is not CPU:
            self.device.backend.finish(self.stream_id)

    def is_capturing(self) -> bool:
        """Whether the work of the device is being captured into a graph."""
        return self.device is not CPU and self.device.backend.capture is not None

    def wait_event(self, event: Event) -> None:
        """Let work that this stream is given from now on wait for an event. The host does not wait."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let work that this stream is given from now on wait for the work that another one has been given. The host does not wait."""
        if stream != self and CPU not in (self.device, stream.device):
            self.device.backend.wait(self.stream_id, stream.device.backend.mark(stream.stream_id))

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, or a new one.

        Raises: RuntimeError on the CPU, as PyTorch does.
        """
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def native_handle(self) -> int:
        """The stream of the driver; 0 for the default stream.

        Raises: RuntimeError on the CPU, which has none.
        """
        if self.device is CPU:
            raise RuntimeError("Backend doesn't support getting stream native handle.")
        return self.device.backend.stream_handle(self.stream_id)

    def __enter__(self) -> Stream:
        self._outer = current_stream(self.device), self._outer
        set_stream(self)
        return self

    def _restore(self) -> None:
        if self._outer is not None:
            outer, self._outer = self._outer
            set_stream(outer)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and other.device == self.device and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )


def current_id(where: device) -> int:
    """The number of the stream that gets the work that this thread gives to a device."""
    found = _current.streams.get(where)
    return 0 if found is None else found.stream_id


def current_stream(where: device, make: type[Stream] = Stream) -> Stream:
    """The stream that this thread has chosen for a device, as an object of the class `make`; else the default stream."""
    found = _current.streams.get(where)
    if isinstance(found, make):
        return found
    return named_stream(where, 0 if found is None else found.stream_id, make)


def named_stream(where: device, stream_id: int, make: type[Stream] = Stream) -> Stream:
    """The stream of a device with this number."""
    return make(where, stream_id=stream_id)


def set_stream(stream: Stream) -> None:
    """Let this be the current stream of its device in this thread.

    Work that the thread has deferred is given to the stream that was the current one, because it was called for there.
    """
    where = stream.device
    if where is CPU or stream.stream_id == current_id(where):
        _current.streams[where] = stream
        return
    where.backend.give_deferred()
    turn_to(stream)
    for each in observers:
        each(stream)


def turn_to(stream: Stream) -> None:
    """As `set_stream`, for a moment: what is deferred stays so, and nobody is told."""
    where = stream.device
    if stream.stream_id == current_id(where):
        return
    chosen.count += bool(stream.stream_id) - bool(current_id(where))
    _current.streams[where] = stream
    where.backend.turn()


@contextlib.contextmanager
def given_to(stream: Stream) -> Iterator[None]:
    """A context in which this thread gives work to a stream, without any other effect of a change of streams."""
    before = current_stream(stream.device)
    turn_to(stream)
    try:
        yield
    finally:
        turn_to(before)


def is_of_current(storage: Any) -> bool:
    """Whether the allocator gives the memory of a storage to the current stream next. Then work of this stream may take the memory over."""
    return getattr(storage.bin, "stream", 0) == current_id(storage.device)


class Event:
    """A point in the work of a stream. As in PyTorch, the CPU cannot record events, but queries work.

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
        """Let the host wait for the work before the event."""
        if self._mark is not None:
            self._mark.wait()

    def wait(self, stream: Stream | None = None) -> None:
        """Let work that a stream, or the current one, is given from now on wait for the work before the event."""
        if self._mark is not None:
            where = self.device if stream is None else stream.device
            where.backend.wait(current_id(where) if stream is None else stream.stream_id, self._mark)

    def record(self, stream: Stream | None = None) -> None:
        """Let the event stand for all work that a stream, or the current one, was given before.

        Raises: RuntimeError on the CPU, as PyTorch does, and for a stream of another device.
        """
        if self.device is CPU:
            raise RuntimeError("cpu backend doesn't support events.")
        if stream is not None and stream.device != self.device:
            raise RuntimeError(
                f"Event device {self.device} does not match recording stream's device {stream.device}."
            )
        self._mark = self.device.backend.mark(None if stream is None else stream.stream_id)

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
