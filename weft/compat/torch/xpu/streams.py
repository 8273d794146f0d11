"""`torch.xpu.streams`: streams and events of XPU devices. Streams are queues of OpenCL."""

from __future__ import annotations

from weft.accelerator._streams import DeviceEvent, DeviceStream, DeviceStreamContext, Streams
from weft.core import streams

from ._devices import DEVICES

__all__ = ["Event", "Stream"]


class Stream(DeviceStream):
    """A queue of work on an XPU device.

    Raises: AssertionError without a device.
    """

    _devices = DEVICES

    @property
    def sycl_queue(self) -> int:
        """The queue of SYCL: 0, because weft drives the device by OpenCL. `native_handle()` is the queue of OpenCL."""
        return 0

    def record_event(self, event: streams.Event | None = None) -> streams.Event:
        """Record an event, or a new one."""
        return super().record_event(Event() if event is None else event)

    def __repr__(self) -> str:
        return f"torch.xpu.Stream(device={self.device} sycl_queue={self.sycl_queue:#x})"


class Event(DeviceEvent):
    """A point in the work of an XPU device, which two of can tell the time between.

    Raises: AssertionError without a device.
    """

    _devices = DEVICES

    def __init__(self, enable_timing: bool = False):
        super().__init__(enable_timing)

    @property
    def sycl_event(self) -> int:
        """The event of SYCL: 0, because weft drives the device by OpenCL."""
        return self._handle

    def __repr__(self) -> str:
        return "torch.xpu.Event(uninitialized)" if self._mark is None else f"torch.xpu.Event({id(self):#x})"


STREAMS = Streams(DEVICES, Stream)
current_stream, set_stream = STREAMS.current_stream, STREAMS.set_stream


class StreamContext(DeviceStreamContext):
    """A context in which a stream, and its device, are the current ones. With None or without a device it does nothing, as in PyTorch."""

    _streams = STREAMS


def stream(stream: streams.Stream | None) -> StreamContext:
    """`StreamContext(stream)`."""
    return StreamContext(stream)
