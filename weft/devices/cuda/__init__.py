"""CUDA devices. With WEFT_CUDA=opencl they are OpenCL's, on which kernels for GPUs run where there is no GPU.

The drivers are imported when a program asks for a device, because they load LLVM's targets and kernels.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.device import device
from .._gpu import nvidia
from .._gpu.numbered import numbered

if TYPE_CHECKING:
    from .._gpu.backend import Gpu
    from .._gpu.runtime import Runtime


def device_count() -> int:
    """How many devices there are; 0 without a driver."""
    if _is_opencl():
        from .._gpu import opencl

        return opencl.device_count()
    return nvidia.device_count()


def backend(where: device) -> Gpu:
    """Return the device of a number.

    Raises: RuntimeError if this computer has no such device.
    """
    count = device_count()
    if not count:
        raise RuntimeError(
            "Found no NVIDIA driver on your system. (CUDA is not available, and device "
            f"{where} was asked for. Use device='cpu', or test torch.cuda.is_available().)"
        )
    return numbered(where, count, _runtime)


def _runtime(index: int) -> Runtime:
    if _is_opencl():
        from .._gpu.opencl import OpenCL

        return OpenCL(index)
    from .._gpu.cuda import Cuda

    return Cuda(index)


def _is_opencl() -> bool:
    return os.environ.get("WEFT_CUDA") == "opencl"
