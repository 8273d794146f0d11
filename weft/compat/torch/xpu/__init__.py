"""weft.xpu: GPUs of OpenCL, such as Intel's. No driver is loaded before a program asks for a device.

Without a device, functions that only ask answer as PyTorch's CPU build does, and functions that need one raise its AssertionError.
What is not here is declared in compat/interface/xpu.pyi, and raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from weft.accelerator._devices import Devices

_DEVICES = Devices("xpu")


def is_available() -> bool:
    """Whether tensors can live on an XPU device.

    >>> import weft as torch
    >>> torch.xpu.is_available() == (torch.xpu.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many XPU devices there are."""
    return _DEVICES.count()


def get_device_name(device: Any = None) -> str:
    """The name that the driver gives a device.

    Raises: AssertionError without a device.
    """
    return _DEVICES.gpu(device).runtime.name


def synchronize(device: Any = None) -> None:
    """Wait until all work given to a device is done.

    Raises: AssertionError without a device.
    """
    _DEVICES.gpu(device).synchronize()


def empty_cache() -> None:
    """Give the blocks of memory that no tensor uses back to the driver."""
    _DEVICES.empty_cache()


def memory_allocated(device: Any = None) -> int:
    """The bytes that the tensors of a device occupy."""
    return _DEVICES.number_of_pool(device, "allocated")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have occupied."""
    return _DEVICES.number_of_pool(device, "most_allocated")


def memory_reserved(device: Any = None) -> int:
    """The bytes of tensors, and of free blocks for the next tensors."""
    return _DEVICES.number_of_pool(device, "reserved")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that tensors and free blocks have taken."""
    return _DEVICES.number_of_pool(device, "most_reserved")
