"""weft.xpu: GPUs of OpenCL, such as Intel's. No driver is loaded before a program asks for a device.

Without a device, functions that only ask answer as PyTorch's CPU build does, and functions that need one raise its AssertionError.
What is not here is declared in compat/interface/xpu.pyi, and raises NotImplementedError.
"""

from __future__ import annotations

from typing import Any

from .._utils import _get_device_index
from ..compat.missing import module_getattr
from ..core import device as places
from ..devices import xpu as devices


def is_available() -> bool:
    """Whether tensors can live on an XPU device.

    >>> import weft as torch
    >>> torch.xpu.is_available() == (torch.xpu.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many XPU devices there are."""
    return devices.device_count()


def get_device_name(device: Any = None) -> str:
    """The name that the driver gives a device.

    Raises: AssertionError without a device.
    """
    return _gpu(device).runtime.name


def synchronize(device: Any = None) -> None:
    """Wait until all work given to a device is done.

    Raises: AssertionError without a device.
    """
    _gpu(device).synchronize()


def empty_cache() -> None:
    """Give the blocks of memory that no tensor uses back to the driver."""
    for each in _started():
        each.pool.release_free()


def memory_allocated(device: Any = None) -> int:
    """The bytes that the tensors of a device occupy."""
    return _of_pool(device, "allocated")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have occupied."""
    return _of_pool(device, "most_allocated")


def memory_reserved(device: Any = None) -> int:
    """The bytes of tensors, and of free blocks for the next tensors."""
    return _of_pool(device, "reserved")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that tensors and free blocks have taken."""
    return _of_pool(device, "most_reserved")


def _index(device: Any) -> int:
    if isinstance(device, str):
        device = places.device(device)
    if isinstance(device, places.device):
        if device.type != "xpu":
            raise ValueError(f"Expected a xpu device, but got: {device}")
        return device.index or 0
    return 0 if device is None else _get_device_index(device)  # type: ignore[return-value]


def _gpu(device: Any) -> Any:
    return places.device("xpu", _index(device)).backend


def _started() -> list[Any]:
    """The devices used so far."""
    return [each for each in places.started_backends() if getattr(each, "device", places.CPU).type == "xpu"]


def _of_pool(device: Any, name: str) -> int:
    """A number of the allocator of a device; 0 for a device that has not been used, which asking does not start."""
    index = _index(device)
    return next((getattr(each.pool, name) for each in _started() if each.device.index == index), 0)


__getattr__ = module_getattr(__name__)
