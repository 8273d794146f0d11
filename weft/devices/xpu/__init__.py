"""XPU devices: GPUs of OpenCL, such as Intel's. With WEFT_XPU=opencl OpenCL's processors are devices as well, for tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.device import device
from .._gpu import opencl
from .._gpu.numbered import numbered

if TYPE_CHECKING:
    from .._gpu.backend import Gpu


def device_count() -> int:
    """How many devices there are; 0 without a driver."""
    return opencl.device_count(_gpus_only())


def backend(where: device) -> Gpu:
    """Return the device of a number.

    Raises: AssertionError if this computer has no such devices, AcceleratorError if it has fewer.
    """
    count = device_count()
    if not count:
        raise AssertionError(
            f"Torch not compiled with XPU enabled (device {where} was asked for, and OpenCL has no GPU here. "
            "Use device='cpu', or test torch.xpu.is_available().)"
        )
    return numbered(where, count, _runtime)


def _runtime(index: int) -> opencl.OpenCL:
    return opencl.OpenCL(index, _gpus_only())


def _gpus_only() -> bool:
    return os.environ.get("WEFT_XPU") != "opencl"
