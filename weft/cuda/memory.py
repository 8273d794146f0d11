"""`torch.cuda.memory`: what the caching allocator of a device holds, and memory that only some tensors get."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..accelerator._memory import Memory, MemoryPool, PoolContext
from ..core.warn import user_level
from ._devices import DEVICES
from .management import list_gpu_processes as list_gpu_processes

MEMORY = Memory(DEVICES)
memory_allocated, max_memory_allocated = MEMORY.memory_allocated, MEMORY.max_memory_allocated
memory_reserved, max_memory_reserved = MEMORY.memory_reserved, MEMORY.max_memory_reserved
memory_stats, memory_stats_as_nested_dict = MEMORY.memory_stats, MEMORY.memory_stats_as_nested_dict
memory_summary, memory_snapshot = MEMORY.memory_summary, MEMORY.memory_snapshot
reset_peak_memory_stats = MEMORY.reset_peak_memory_stats
reset_accumulated_memory_stats = MEMORY.reset_accumulated_memory_stats
host_memory_stats = MEMORY.host_memory_stats
host_memory_stats_as_nested_dict = MEMORY.host_memory_stats_as_nested_dict
reset_peak_host_memory_stats = MEMORY.reset_peak_host_memory_stats
reset_accumulated_host_memory_stats = MEMORY.reset_accumulated_host_memory_stats
mem_get_info, empty_cache = MEMORY.mem_get_info, MEMORY.empty_cache
get_allocator_backend = MEMORY.get_allocator_backend
set_per_process_memory_fraction = MEMORY.set_per_process_memory_fraction
get_per_process_memory_fraction = MEMORY.get_per_process_memory_fraction
caching_allocator_alloc, caching_allocator_delete = (
    MEMORY.caching_allocator_alloc,
    MEMORY.caching_allocator_delete,
)
_snapshot, _dump_snapshot = MEMORY._snapshot, MEMORY._dump_snapshot
_record_memory_history = MEMORY._record_memory_history


class MemPool(MemoryPool):
    """Memory for the tensors that are made in `use_mem_pool`, and for no others.

    Raises: RuntimeError without a device, NotImplementedError for an `allocator` of C, `use_on_oom` and `no_split`.

    >>> import weft as torch
    >>> if torch.cuda.is_available():
    ...     pool = torch.cuda.MemPool()
    ...     with torch.cuda.use_mem_pool(pool):
    ...         x = torch.ones(3, device="cuda")
    ...     assert pool.snapshot()
    """

    _devices = DEVICES


def use_mem_pool(pool: MemPool, device: Any = None) -> PoolContext:
    """A context in which all threads' tensors of a device get their memory from a MemPool.

    Raises: RuntimeError without a device.
    """
    return PoolContext(DEVICES, pool, device)


def _renamed(old: str, new: str, function: Callable) -> Callable:
    def call(device: Any = None) -> Any:
        warnings.warn(
            f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`",
            FutureWarning,
            stacklevel=user_level(),
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
