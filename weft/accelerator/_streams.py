"""Streams and events of the devices of a type: what `torch.cuda` and `torch.xpu` share."""

from __future__ import annotations

import ctypes
from typing import Any

from ..core import device as places
from ..core import streams
from ..core.restoring import Restoring
from ._devices import Devices


class DeviceStream(streams.Stream):
    """A queue of work on a device of the type.

    priority: lower numbers go first. Numbers out of `priority_range()` are those of its nearest end.

    Raises: the error of the type without a device.
    """

    _devices: Devices

    def __init__(self, device: Any = None, priority: int = 0, **options: Any):
        gpu = _gpu(self._devices, options.pop("device_index", None) if device is None else device)
        least, greatest = gpu.runtime.priorities()
        super().__init__(gpu.device, priority=min(max(int(priority), greatest), least), **options)

    @classmethod
    def priority_range(cls) -> tuple[int, int]:
        """The least and the greatest priority that the driver of the current device has.

        Raises: the error of the type without a device.
        """
        return cls._devices.gpu().runtime.priorities()

    @property
    def _handle(self) -> int:
        return self.native_handle()

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._handle)


class DeviceEvent(streams.Event):
    """A point in the work of a device of the type.

    Raises: the error of the type without a device.
    """

    _devices: Devices
    _handle = 0  # the driver's event, which programs cannot use

    def __init__(self, enable_timing: bool = False, blocking: bool = False):
        super().__init__(self._devices.gpu().device, enable_timing=enable_timing, blocking=blocking)

    def record(self, stream: streams.Stream | None = None) -> None:
        """Let the event stand for all work that was given to a stream, or to the current one of the current device, before."""
        self.device = self._devices.gpu().device if stream is None else stream.device
        super().record(stream)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self._handle)


def _gpu(devices: Devices, device: Any) -> Any:
    """The device of a stream; None and negative numbers mean the current one."""
    return devices.gpu(None if isinstance(device, int) and device < 0 else device)


class Streams:
    """The functions about streams of devices whose streams are of class `stream_class`."""

    def __init__(self, devices: Devices, stream_class: type[DeviceStream]):
        self._devices, self._class = devices, stream_class

    def current_stream(self, device: Any = None) -> Any:
        """The stream that this thread has chosen for a device; the default stream unless there is another one.

        Raises: the error of the type without a device.
        """
        return streams.current_stream(_gpu(self._devices, device).device, self._class)

    def default_stream(self, device: Any = None) -> Any:
        """The default stream of a device.

        Raises: the error of the type without a device.
        """
        return streams.named_stream(_gpu(self._devices, device).device, 0, self._class)

    def set_stream(self, stream: streams.Stream | None) -> None:
        """Choose the stream of this thread for its device, and the device as the current one. None changes nothing."""
        if stream is not None:
            places.set_current_index(self._devices.type, self._devices.index_of(stream.device))
            streams.set_stream(stream)


class DeviceStreamContext(Restoring):
    """A context in which a stream, and its device, are the current ones. With None or without a device it does nothing, as in PyTorch."""

    _streams: Streams

    def __init__(self, stream: streams.Stream | None):
        self.stream = stream
        self.idx = self._streams._devices.index_of(None)
        self._before: tuple[int, Any] | None = None

    def __enter__(self) -> None:
        if self.stream is not None and self._streams._devices.is_available():
            before = self._streams._devices.index_of(None), self._streams.current_stream(self.stream.device)
            self._before = before
            self._streams.set_stream(self.stream)

    def _restore(self) -> None:
        if self._before is not None:
            index, stream = self._before
            streams.set_stream(stream)
            places.set_current_index(self._streams._devices.type, index)
