"""The devices of a type, by what programs call them: what `torch.cuda` and `torch.xpu` share."""

from __future__ import annotations

from typing import Any

from ..core import device as places
from ..core.device import device_index


class Devices:
    """The devices of one type on this computer."""

    def __init__(self, type: str):
        self.type = type

    def count(self) -> int:
        """How many there are. The first call loads the driver."""
        return places.device_count(self.type)

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

    def started(self) -> list[Any]:
        """The devices used so far."""
        return [
            each
            for each in places.started_backends()
            if getattr(each, "device", places.CPU).type == self.type
        ]

    def pool(self, device: Any) -> Any:
        """The allocator of a device; None if the device has not been used.

        Raises: the error of `gpu` if there are devices, but not this one.
        """
        index = self.index_of(device)
        found = next((each.pool for each in self.started() if each.device.index == index), None)
        if found is None and self.count() and not 0 <= index < self.count():
            return self.gpu(index).pool  # which raises
        return found

    def number_of_pool(self, device: Any, name: str) -> int:
        """A number of the allocator of a device; 0 for a device that has not been used, which asking does not start."""
        pool = self.pool(device)
        return 0 if pool is None else getattr(pool, name)

    def is_capturing(self) -> bool:
        """Whether work of the current device is being captured."""
        index = self.index_of(None)
        return any(each.capture is not None for each in self.started() if each.device.index == index)

    def synchronize(self, device: Any = None) -> None:
        """Wait until all work of a device is done.

        Raises: the error of `gpu`.
        """
        self.gpu(device).synchronize()

    def empty_cache(self) -> None:
        """Give the blocks of memory that no tensor uses back to the driver."""
        for each in self.started():
            each.pool.release_free()
