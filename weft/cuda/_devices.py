"""The CUDA devices of this computer, by what programs call them."""

from __future__ import annotations

from typing import Any

from ..accelerator._devices import Devices

DEVICES = Devices("cuda")


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
        self._architecture: str = runtime.architecture

    @property
    def gcnArchName(self) -> str:  # noqa: N802 (PyTorch's name)
        """The architecture of a GPU of AMD, such as "gfx90a:sramecc+:xnack-". For others it is the name."""
        return self._architecture or self.name

    def __repr__(self) -> str:
        architecture = f" gcnArchName='{self._architecture}'," if self._architecture else ""
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor},{architecture} "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )
