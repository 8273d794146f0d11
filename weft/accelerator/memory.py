"""The memory of the accelerator, `torch.accelerator.memory`. Without an accelerator each function says that there is none."""

from __future__ import annotations

from typing import Any

from ._module import module

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "memory_stats",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "get_memory_info",
]


def empty_cache() -> None:
    """Give unused memory back.

    Raises: RuntimeError without an accelerator.
    """
    module().empty_cache()


def empty_host_cache() -> None:
    """Give unused pinned memory back: there is none, because pinned memory goes back with its tensor.

    Raises: RuntimeError without an accelerator.
    """
    module()


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """Numbers of the allocator.

    Raises: RuntimeError without an accelerator.
    """
    return module().memory_stats(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes of tensors.

    Raises: RuntimeError without an accelerator.
    """
    return module().memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes of tensors so far.

    Raises: RuntimeError without an accelerator.
    """
    return module().max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that the allocator holds.

    Raises: RuntimeError without an accelerator.
    """
    return module().memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that the allocator held so far.

    Raises: RuntimeError without an accelerator.
    """
    return module().max_memory_reserved(device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Begin to count anew.

    Raises: RuntimeError without an accelerator.
    """
    module().reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Forget the largest numbers so far.

    Raises: RuntimeError without an accelerator.
    """
    module().reset_peak_memory_stats(device_index)


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes.

    Raises: RuntimeError without an accelerator.
    """
    return module().mem_get_info(device_index)
