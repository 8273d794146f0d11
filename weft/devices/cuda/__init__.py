"""CUDA devices. With WEFT_CUDA=opencl they are OpenCL's, on which kernels for GPUs run where there is no GPU."""

from __future__ import annotations

import functools
import os

from ...core.device import device
from ...core.qscheme import AcceleratorError
from .._gpu import driver, opencl
from .._gpu.backend import Gpu


def device_count() -> int:
    """How many devices there are; 0 without a driver."""
    return opencl.device_count() if _is_opencl() else driver.device_count()


def backend(where: device) -> Gpu:
    """The device of a number.

    Raises: RuntimeError if this computer has no such device.
    """
    index, count = where.index or 0, device_count()
    if not count:
        raise RuntimeError(
            "Found no NVIDIA driver on your system. (CUDA is not available, and device "
            f"{where} was asked for. Use device='cpu', or test torch.cuda.is_available().)"
        )
    if index >= count:
        raise AcceleratorError(
            f"CUDA error: invalid device ordinal: {where} was asked for, of {count} devices"
        )
    return _backend(index)


@functools.cache
def _backend(index: int) -> Gpu:
    return Gpu(device("cuda", index), opencl.OpenCL(index) if _is_opencl() else driver.Cuda(index))


def _is_opencl() -> bool:
    return os.environ.get("WEFT_CUDA") == "opencl"
