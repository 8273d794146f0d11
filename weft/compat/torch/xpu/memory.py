"""`torch.xpu.memory`: what the caching allocator of a device holds, and memory that only some tensors get."""

from __future__ import annotations

from typing import Any

from weft.accelerator._memory import Memory, MemoryPool, PoolContext

from ._devices import DEVICES

_MEMORY = Memory(DEVICES)
memory_allocated, max_memory_allocated = _MEMORY.memory_allocated, _MEMORY.max_memory_allocated
memory_reserved, max_memory_reserved = _MEMORY.memory_reserved, _MEMORY.max_memory_reserved
memory_stats, memory_stats_as_nested_dict = _MEMORY.memory_stats, _MEMORY.memory_stats_as_nested_dict
memory_snapshot = _MEMORY.memory_snapshot
reset_peak_memory_stats = _MEMORY.reset_peak_memory_stats
reset_accumulated_memory_stats = _MEMORY.reset_accumulated_memory_stats
mem_get_info, empty_cache = _MEMORY.mem_get_info, _MEMORY.empty_cache
set_per_process_memory_fraction = _MEMORY.set_per_process_memory_fraction
get_per_process_memory_fraction = _MEMORY.get_per_process_memory_fraction
_snapshot, _dump_snapshot = _MEMORY._snapshot, _MEMORY._dump_snapshot
_record_memory_history = _MEMORY._record_memory_history


class MemPool(MemoryPool):
    """Memory for the tensors that are made in `use_mem_pool`, and for no others.

    Raises: AssertionError without a device, NotImplementedError for an `allocator` of C and for `use_on_oom`.
    """

    _devices = DEVICES

    def __init__(self, allocator: Any = None, use_on_oom: bool = False):
        super().__init__(allocator, use_on_oom)


def use_mem_pool(pool: MemPool, device: Any = None) -> PoolContext:
    """A context in which all threads' tensors of a device get their memory from a MemPool.

    Raises: AssertionError without a device.
    """
    return PoolContext(DEVICES, pool, device)
