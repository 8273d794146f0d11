"""`torch.cuda.cudart()`: functions of CUDA's runtime that programs call, by NVIDIA's driver, and its errors."""

from __future__ import annotations

import enum
from typing import Any

from ..devices._gpu import nvidia
from ._devices import DEVICES
from .memory import mem_get_info


class cudaError(enum.IntEnum):  # noqa: N801 (CUDA's name)
    """Results of functions."""

    success = 0


class Runtime:
    """The functions. Others than these raise NotImplementedError."""

    cudaError = cudaError

    def cudaProfilerStart(self) -> int:  # noqa: N802 (CUDA's names)
        """Let a profiler that waits for the program begin."""
        DEVICES.gpu().runtime.profile(True)
        return cudaError.success

    def cudaProfilerStop(self) -> int:  # noqa: N802
        """Let the profiler end."""
        DEVICES.gpu().runtime.profile(False)
        return cudaError.success

    def cudaMemGetInfo(self, device: Any = None) -> tuple[int, int]:  # noqa: N802
        """The free and the total bytes of a device."""
        return mem_get_info(device)

    def cudaGetErrorString(self, error: Any) -> str:  # noqa: N802
        """What an error means, in the words of NVIDIA's driver; without a driver "error"."""
        return nvidia.library().error_text(int(error)) if nvidia.device_count() else "error"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python asks of any object
            raise AttributeError(name)
        raise NotImplementedError(f"torch.cuda.cudart().{name}: weft has no runtime library of CUDA")


_RUNTIME = Runtime()


def cudart() -> Runtime:
    """The functions of CUDA's runtime that weft has: cudaProfilerStart, cudaProfilerStop, cudaMemGetInfo and cudaGetErrorString.

    Raises: RuntimeError without a device.
    """
    DEVICES.init()
    return _RUNTIME


class cudaStatus:  # noqa: N801 (PyTorch's name)
    """Results of functions of CUDA."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """The error of a function of CUDA that returned `code`."""

    def __init__(self, code: Any):
        super().__init__(f"{_RUNTIME.cudaGetErrorString(code)} ({code})")


def check_error(res: int) -> None:
    """Raise CudaError for the result of a function unless it is `cudart().cudaError.success`."""
    if res != cudaError.success:
        raise CudaError(res)
