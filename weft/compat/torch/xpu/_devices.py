"""The XPU devices of this computer, by what programs call them."""

from __future__ import annotations

from typing import Any

from weft.accelerator._devices import Devices

DEVICES = Devices("xpu")


class DeviceProperties:
    """What `torch.xpu.get_device_properties` returns: what OpenCL says of a device."""

    def __init__(self, runtime: Any):
        self.name: str = runtime.name
        self.total_memory: int = runtime.total_memory
        self.max_compute_units: int = runtime.multiprocessors
        self.last_level_cache_size: int = runtime.cache_size
        for name, value in runtime.description().items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"_XpuDeviceProperties({parts})"
