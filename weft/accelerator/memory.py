"""The memory of an accelerator, `torch.accelerator.memory`. There is none, and each function says so."""

from __future__ import annotations

from typing import Any

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


def none_available() -> RuntimeError:
    """The error of all of them."""
    return RuntimeError("Cannot access accelerator device when none is available.")


def empty_cache() -> None:
    """Give unused memory back.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def empty_host_cache() -> None:
    """Give unused pinned memory back.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """Numbers of the allocator.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes of tensors.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes of tensors so far.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that the allocator holds.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that the allocator held so far.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Begin to count anew.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Forget the largest numbers so far.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes.

    Raises: RuntimeError without an accelerator.
    """
    raise none_available()
