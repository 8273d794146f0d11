"""CUDA devices: those of NVIDIA's driver, or AMD's GPUs where that driver is not there and HIP is.

WEFT_CUDA=hip makes them AMD's in any case. With WEFT_CUDA=opencl they are OpenCL's, on which kernels for GPUs run where there is no GPU.
The drivers are imported when a program asks for a device, because they load LLVM's targets and kernels.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.device import device
from .._gpu import amd, nvidia
from .._gpu.numbered import numbered

if TYPE_CHECKING:
    from .._gpu.backend import Gpu
    from .._gpu.runtime import Runtime


def driver() -> str:
    """Which driver has the devices: "cuda", "hip" or "opencl"."""
    named = os.environ.get("WEFT_CUDA")
    if named in ("hip", "opencl"):
        return named
    return "hip" if not nvidia.is_installed() and amd.is_installed() else "cuda"


def device_count() -> int:
    """How many devices there are; 0 without a driver."""
    if driver() == "opencl":
        from .._gpu import opencl

        return opencl.device_count()
    return amd.device_count() if driver() == "hip" else nvidia.device_count()


def hip_version() -> str | None:
    """The version of HIP, if the devices are HIP's."""
    if driver() != "hip":
        return None
    try:
        return amd.library().version()
    except (OSError, nvidia.DriverError):
        return None


def backend(where: device) -> Gpu:
    """Return the device of a number.

    Raises: RuntimeError if this computer has no such device.
    """
    count = device_count()
    if not count:
        missing = (
            "No HIP GPUs are available" if driver() == "hip" else "Found no NVIDIA driver on your system"
        )
        raise RuntimeError(
            f"{missing}. (CUDA is not available, and device "
            f"{where} was asked for. Use device='cpu', or test torch.cuda.is_available().)"
        )
    return numbered(where, count, _runtime)


def _runtime(index: int) -> Runtime:
    found = driver()
    if found == "opencl":
        from .._gpu.opencl import OpenCL

        return OpenCL(index)
    if found == "hip":
        from .._gpu.hip import Hip

        return Hip(index)
    from .._gpu.cuda import Cuda

    return Cuda(index)
