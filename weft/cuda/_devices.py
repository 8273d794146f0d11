"""The CUDA devices of this computer, by what programs call them."""

from __future__ import annotations

from typing import Any

from .._utils import _get_device_index
from ..core import device as places


def count() -> int:
    """How many there are. The first call loads the driver."""
    return places.device_count("cuda")


def index_of(device: Any) -> int:
    """The number of a device that is a number, a string, a `torch.device`, or None for the current one.

    Raises: ValueError for a device of another type.
    """
    if isinstance(device, str):
        device = places.device(device)
    if isinstance(device, places.device):
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        return device.place.index or 0
    return places.current_index("cuda") if device is None else _get_device_index(device)  # type: ignore[return-value]


def gpu(device: Any = None) -> Any:
    """The `Gpu` that computes there.

    Raises: RuntimeError if there is none, AcceleratorError if there are fewer.
    """
    return places.device("cuda", index_of(device)).backend


def started() -> list[Any]:
    """The devices used so far."""
    return [each for each in places.started_backends() if getattr(each, "device", places.CPU).type == "cuda"]


class DeviceProperties:
    """What `torch.cuda.get_device_properties` returns."""

    def __init__(self, runtime: Any):
        self.name: str = runtime.name
        self.major: int
        self.minor: int
        self.major, self.minor = runtime.capability
        self.total_memory: int = runtime.total_memory
        self.multi_processor_count: int = runtime.multiprocessors
        self.max_threads_per_multi_processor: int = runtime.threads_per_multiprocessor
        self.warp_size: int = runtime.warp_size
        self.L2_cache_size: int = runtime.cache_size

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )
