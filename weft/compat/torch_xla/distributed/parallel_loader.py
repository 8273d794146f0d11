"""`torch_xla.distributed.parallel_loader`: batches on a device, one step for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..core import xla_model as xm


class MpDeviceLoader:
    """The batches of a loader on a device. What is pending runs before each batch, and after the last one."""

    def __init__(self, loader: Iterable, device: Any):
        self._loader, self._device = loader, device

    def __iter__(self) -> Iterator[Any]:
        for batch in self._loader:
            xm.mark_step()
            yield xm.send_cpu_data_to_device(batch, self._device)
        xm.mark_step()

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]


class ParallelLoader:
    """The batches of a loader, for one device."""

    def __init__(self, cpu_loader: Iterable, devices: list[Any]):
        if len(devices) != 1:
            raise NotImplementedError("ParallelLoader with several devices")
        self._loader, self._device = cpu_loader, devices[0]

    def per_device_loader(self, device: Any) -> MpDeviceLoader:
        """The batches on the device."""
        return MpDeviceLoader(self._loader, device)
