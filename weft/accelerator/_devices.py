"""The devices of a type, by what programs call them: what `torch.cuda` and `torch.xpu` share.

The modules of devices have methods of these classes as their functions.
"""

from __future__ import annotations

from typing import Any

from ..core import device as places
from ..core.device import device_index
from ..core.restoring import Restoring


class Devices:
    """The devices of one type on this computer."""

    def __init__(self, type: str):
        self.type = type

    def device_count(self) -> int:
        """How many devices there are. The first call loads the driver."""
        return places.device_count(self.type)

    def is_available(self) -> bool:
        """Whether tensors can live on a device of the type.

        >>> import weft as torch
        >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
        True
        """
        return self.device_count() > 0

    def init(self) -> None:
        """Load the driver and start the current device, which the first tensor there does as well.

        Raises: the error of the type without a device.
        """
        self.gpu()

    def is_initialized(self) -> bool:
        """Whether a device of the type has been used."""
        return bool(self.started())

    def current_device(self) -> int:
        """The number of the device that the type without a number means.

        Raises: the error of the type without a device.
        """
        self.gpu()
        return places.current_index(self.type)

    def set_device(self, device: Any) -> None:
        """Let the type without a number mean this device. Programs should rather use a context. A negative number changes nothing.

        Raises: RuntimeError if there is no such device.
        """
        index = self.index_of(device)
        if index >= 0:
            self.gpu(index)
            places.set_current_index(self.type, index)

    def _exchange_device(self, device: int) -> int:
        """Choose the current device unless the number is negative. Returns the number of the one before, -1 if nothing changes."""
        if device < 0:
            return -1
        before = self.current_device()
        self.set_device(device)
        return before

    def synchronize(self, device: Any = None) -> None:
        """Wait until all work of a device is done.

        Raises: the error of the type without a device.
        """
        self.gpu(device).synchronize()

    def index_of(self, device: Any) -> int:
        """The number of a device that is a number, a string, a `torch.device`, or None for the current one.

        Raises: ValueError for a device of another type.
        """
        if isinstance(device, str):
            device = places.device(device)
        if isinstance(device, places.device):
            if device.type != self.type:
                raise ValueError(f"Expected a {self.type} device, but got: {device}")
            return device.place.index or 0
        return places.current_index(self.type) if device is None else device_index(device)  # type: ignore[return-value]

    def gpu(self, device: Any = None) -> Any:
        """The `Gpu` that computes there.

        Raises: the error of the type if there is none, AcceleratorError if there are fewer.
        """
        return places.device(self.type, self.index_of(device)).backend

    def runtime(self, device: Any = None) -> Any:
        """The driver of a device.

        Raises: the error of the type if there is none, AssertionError for a number that no device has.
        """
        index = self.index_of(device)
        if self.is_available() and not 0 <= index < self.device_count():
            raise AssertionError("Invalid device id")
        return self.gpu(index).runtime

    def get_device_name(self, device: Any = None) -> str:
        """The name that the driver gives a device, such as "NVIDIA H100 80GB HBM3".

        Raises: the error of the type without a device.
        """
        return self.runtime(device).name

    def can_device_access_peer(self, device: Any, peer_device: Any) -> bool:
        """Whether copies from one device to another need no detour through the host.

        Raises: the error of the type without a device, AssertionError for a number that no device has.
        """
        return self.runtime(device).can_access(self.runtime(peer_device))

    def started(self) -> list[Any]:
        """The devices used so far."""
        found = dict.fromkeys(places.started_backends())  # "cuda" and "cuda:0" have the same one
        return [each for each in found if getattr(each, "device", places.CPU).type == self.type]

    def started_one(self, device: Any = None) -> Any:
        """The `Gpu` of a device; None if it has not been used."""
        index = self.index_of(device)
        return next((each for each in self.started() if each.device.index == index), None)

    def is_current_stream_capturing(self) -> bool:
        """Whether work of the current device is being captured. False without a device, and for one that has not been used."""
        found = self.started_one()
        return found is not None and found.capture is not None


class DeviceContext(Restoring):
    """A context in which another device of its type is the current one. Without a device of the type it does nothing, as in PyTorch."""

    _devices: Devices

    def __init__(self, device: Any):
        self.device = device
        self.idx = self._devices.index_of(device) if self._devices.is_available() else -1
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self._devices.gpu(self.idx)
            self.prev_idx = places.current_index(self._devices.type)
            places.set_current_index(self._devices.type, self.idx)

    def _restore(self) -> None:
        if self.prev_idx >= 0:
            places.set_current_index(self._devices.type, self.prev_idx)
