"""`torch.cuda.streams`: streams and events of CUDA devices."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

from ..accelerator._streams import DeviceEvent, DeviceStream, DeviceStreamContext, Streams
from ..core import streams
from ..devices._gpu.queues import FIRST_HANDLE
from ._devices import DEVICES

__all__ = ["Event", "ExternalStream", "Stream"]


class Stream(DeviceStream):
    """A queue of work on a CUDA device. Work of two streams may overlap, unless one waits for the other.

    A program has 32 streams of each priority. Further objects stand for one of these, in turns.

    >>> import weft as torch
    >>> if torch.cuda.is_available():
    ...     side = torch.cuda.Stream()
    ...     x = torch.ones(3, device="cuda")
    ...     side.wait_stream(torch.cuda.current_stream())
    ...     with torch.cuda.stream(side):
    ...         y = x + 1
    ...     torch.cuda.current_stream().wait_stream(side)

    Raises: RuntimeError without a device.
    """

    _devices = DEVICES

    @property
    def cuda_stream(self) -> int:
        """The driver's handle; 0 for the default stream."""
        return self._handle

    def record_event(self, event: streams.Event | None = None) -> streams.Event:
        """Record an event, or a new one."""
        return super().record_event(Event() if event is None else event)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, and the driver's handle."""
        return 0, self.cuda_stream

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of the driver that another library has made, and keeps as long as this object is used.

    Raises: RuntimeError without a device, ValueError for a number that is not the driver's handle of a stream.
    """

    def __init__(self, stream_ptr: int, device: Any = None, **options: Any):
        handle = operator.index(stream_ptr)
        if 0 < handle < FIRST_HANDLE or handle < 0:
            raise ValueError(
                f"ExternalStream: {stream_ptr} is no handle of a stream of the driver: pass a cudaStream_t as an int"
            )
        super().__init__(device, stream_id=handle, **options)


class Event(DeviceEvent):
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

    _devices = DEVICES

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ):
        if interprocess or external:
            raise NotImplementedError("torch.cuda.Event: weft has no events of other processes or of graphs")
        super().__init__(enable_timing, blocking)

    @property
    def cuda_event(self) -> int:
        """The driver's handle: 0, because programs cannot use it."""
        return self._handle

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> NoReturn:
        """The event of another process.

        Raises: NotImplementedError.
        """
        raise NotImplementedError("torch.cuda.Event: weft has no events of other processes")

    def ipc_handle(self) -> NoReturn:
        """A handle for another process.

        Raises: NotImplementedError.
        """
        raise NotImplementedError("torch.cuda.Event: weft has no events of other processes")

    def __repr__(self) -> str:
        return (
            "<torch.cuda.Event uninitialized>" if self._mark is None else f"<torch.cuda.Event {id(self):#x}>"
        )


STREAMS = Streams(DEVICES, Stream)
current_stream, default_stream, set_stream = (
    STREAMS.current_stream,
    STREAMS.default_stream,
    STREAMS.set_stream,
)


class StreamContext(DeviceStreamContext):
    """A context in which a stream, and its device, are the current ones. With None or without CUDA it does nothing, as in PyTorch."""

    _streams = STREAMS


def stream(stream: streams.Stream | None) -> StreamContext:
    """`StreamContext(stream)`."""
    return StreamContext(stream)


def get_stream_from_external(data_ptr: int, device: Any = None) -> ExternalStream:
    """`ExternalStream(data_ptr, device)`."""
    return ExternalStream(data_ptr, device)
