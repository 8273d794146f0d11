"""`torch.cuda.memory`: what the caching allocator of a device holds (`devices/_gpu/memory.py`).

A device that has not been used holds nothing, and asking about it does not start it.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ._devices import DEVICES, gpu, index_of


def memory_allocated(device: Any = None) -> int:
    """The bytes that the tensors of a device occupy.

    >>> import weft as torch
    >>> torch.cuda.memory_allocated() <= torch.cuda.max_memory_allocated()
    True
    """
    return DEVICES.number_of_pool(device, "allocated")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have occupied since the last `reset_peak_memory_stats`."""
    return DEVICES.number_of_pool(device, "most_allocated")


def memory_reserved(device: Any = None) -> int:
    """The bytes that the allocator has taken from the driver: those of tensors, and free blocks for the next tensors."""
    return DEVICES.number_of_pool(device, "reserved")


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the allocator has held since the last `reset_peak_memory_stats`."""
    return DEVICES.number_of_pool(device, "most_reserved")


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """The allocator's numbers, by PyTorch's names; empty for a device that has not been used.

    Kinds: bytes of tensors (allocated and active), bytes taken from the driver (reserved), tensors (allocation and active), and blocks
    (segment). Each has `current` and `peak`, and those of tensors also `allocated` and `freed`, which only grow. Further: `num_ooms`
    counts OutOfMemoryError, `num_alloc_retries` the allocations that freed unused blocks first.
    """
    pool = DEVICES.pool(device)
    found: OrderedDict[str, int] = OrderedDict()
    if pool is None:
        return found
    for names, numbers in (
        (("active_bytes", "allocated_bytes"), pool.bytes_of_tensors()),
        (("active", "allocation"), pool.tensors()),
        (("reserved_bytes",), {"current": pool.reserved, "peak": pool.most_reserved}),
        (("segment",), {"current": pool.segments, "peak": pool.most_segments}),
    ):
        for name in names:
            found.update({f"{name}.all.{which}": value for which, value in numbers.items()})
    found["num_alloc_retries"], found["num_ooms"] = pool.retries, pool.failures
    return OrderedDict(sorted(found.items()))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let all peaks be the present numbers.

    Raises: RuntimeError without a device.
    """
    gpu(device).pool.reset_peaks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the counts of what was allocated and freed begin at zero.

    Raises: RuntimeError without a device.
    """
    gpu(device).pool.reset_counts()


def empty_cache() -> None:
    """Give the free blocks of all devices back to the driver."""
    DEVICES.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The free and the total bytes of a device. Other programs may have taken some of them.

    Raises: RuntimeError without a device.
    """
    found = gpu(device)
    total = found.runtime.total_memory
    return min(found.runtime.free_memory(), total - found.pool.reserved), total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The allocator's numbers as a table to print."""
    index, stats = index_of(device), memory_stats(device)
    lines = [f"weft CUDA memory summary, device ID {index}", ""]
    lines.append(f"{'Metric':<18} {'Cur Usage':>14} {'Peak Usage':>14} {'Tot Alloc':>14} {'Tot Freed':>14}")
    for title, name in (
        ("Allocated memory", "allocated_bytes"),
        ("GPU reserved memory", "reserved_bytes"),
        ("Allocations", "allocation"),
        ("GPU segments", "segment"),
    ):
        cells = [
            _cell(stats.get(f"{name}.all.{which}"), name.endswith("bytes"))
            for which in ("current", "peak", "allocated", "freed")
        ]
        lines.append(" ".join([f"{title:<18}", *(f"{cell:>14}" for cell in cells)]))
    lines.append(
        f"CUDA OOMs: {stats.get('num_ooms', 0)}; retries after freeing blocks: {stats.get('num_alloc_retries', 0)}"
    )
    return "\n".join(lines) + "\n"


def _cell(value: int | None, is_bytes: bool) -> str:
    if value is None:
        return "-"
    return f"{value / (1 << 20):.2f} MiB" if is_bytes else str(value)


def _renamed(old: str, new: str, function: Callable) -> Callable:
    def call(device: Any = None) -> Any:
        warnings.warn(
            f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=2
        )
        return function(device)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"`{new}`, by its old name."
    return call


memory_cached = _renamed("memory_cached", "memory_reserved", memory_reserved)
max_memory_cached = _renamed("max_memory_cached", "max_memory_reserved", max_memory_reserved)
reset_max_memory_allocated = _renamed(
    "reset_max_memory_allocated", "reset_peak_memory_stats", reset_peak_memory_stats
)
reset_max_memory_cached = _renamed(
    "reset_max_memory_cached", "reset_peak_memory_stats", reset_peak_memory_stats
)
