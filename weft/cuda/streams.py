"""`torch.cuda.streams`: streams and events of CUDA devices. All work of a device is done in order, on the default stream of the driver."""

from __future__ import annotations

import ctypes
from typing import Any

from ..core import device as places
from ..core import streams
from ..core.restoring import Restoring
from ._devices import count, gpu, index_of

__all__ = ["Event", "Stream"]


def _place(device: Any) -> places.device:
    """The device of a stream; None and negative numbers mean the current one."""
    if isinstance(device, int) and device < 0:
        device = None
    return gpu(device).device


class Stream(streams.Stream):
    """A queue of work on a CUDA device.

    Raises: RuntimeError without a device.
    """

    cuda_stream = 0  # the driver's handle: the default stream

    def __init__(self, device: Any = None, priority: int = 0, **options: Any):
        super().__init__(_place(device), priority=priority)

    def record_event(self, event: streams.Event | None = None) -> streams.Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, and the driver's handle."""
        return 0, self.cuda_stream

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event(streams.Event):
    """A point in the work of a CUDA device, which two of can tell the time between.

    Raises: RuntimeError without a device, NotImplementedError for `interprocess` and `external`.

    >>> import weft as torch
    >>> if torch.cuda.is_available():
    ...     start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    ...     start.record()
    ...     end.record()
    ...     end.synchronize()
    ...     assert start.elapsed_time(end) >= 0
    """

    cuda_event = 0  # the driver's handle, which programs cannot use

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ):
        if interprocess or external:
            raise NotImplementedError("torch.cuda.Event: weft has no events of other processes or of graphs")
        super().__init__(_place(None), enable_timing=enable_timing)

    def record(self, stream: streams.Stream | None = None) -> None:
        """Let the event stand for all work that was given to the device of a stream, or to the current device, before."""
        self.device = _place(None) if stream is None else stream.device
        super().record(stream)

    def __repr__(self) -> str:
        return (
            "<torch.cuda.Event uninitialized>" if self._mark is None else f"<torch.cuda.Event {id(self):#x}>"
        )


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread has chosen for a device; the default stream unless there is another one.

    Raises: RuntimeError without a device.
    """
    return streams.current_stream(_place(device), Stream)  # type: ignore[return-value]


def default_stream(device: Any = None) -> Stream:
    """The default stream of a device.

    Raises: RuntimeError without a device.
    """
    return streams.named_stream(_place(device), 0, Stream)  # type: ignore[return-value]


def set_stream(stream: streams.Stream | None) -> None:
    """Choose the stream of this thread for its device, and the device as the current one. None changes nothing."""
    if stream is not None:
        places.set_current_index("cuda", index_of(stream.device))
        streams.set_stream(stream)


class StreamContext(Restoring):
    """A context in which a stream, and its device, are the current ones. With None or without CUDA it does nothing, as in PyTorch."""

    def __init__(self, stream: streams.Stream | None):
        self.stream = stream
        self._before: tuple[int, Stream] | None = None

    def __enter__(self) -> None:
        if self.stream is not None and count():
            before = places.current_index("cuda"), current_stream(self.stream.device)
            self._before = before
            set_stream(self.stream)

    def _restore(self) -> None:
        if self._before is not None:
            index, stream = self._before
            streams.set_stream(stream)
            places.set_current_index("cuda", index)


def stream(stream: streams.Stream | None) -> StreamContext:
    """`StreamContext(stream)`."""
    return StreamContext(stream)
