"""What the allocator of a device holds (`devices/_gpu/memory.py`), for `torch.cuda.memory` and `torch.xpu.memory`.

A device that has not been used holds nothing, and asking about it does not start it.
"""

from __future__ import annotations

import itertools
import pickle
import sys
from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from ..core import streams
from ..core.restoring import Restoring
from ..core.storage import Storage
from ..devices._gpu.pinned import HOST
from ._devices import Devices
from ._memory_history import history_for, history_of
from ._memory_table import table

_pool_numbers = itertools.count(1)  # of graphs and MemPools


def new_pool_id() -> tuple[int, int]:
    """The number of a pool of memory that graphs and MemPools can share."""
    return 0, next(_pool_numbers)


def graph_pool_id() -> tuple[int, int]:
    """The number of the pool of one graph."""
    return next(_pool_numbers), 0


class Memory:
    """The memory of the devices of a type."""

    def __init__(self, devices: Devices):
        self._devices = devices
        self._lent: dict[int, Storage] = {}  # what `caching_allocator_alloc` gave, by address

    def _pool(self, device: Any) -> Any:
        """The allocator of a device; None if the device has not been used.

        Raises: the error of the type if there are devices, but not this one.
        """
        found = self._devices.started_one(device)
        if found is None:
            count, index = self._devices.device_count(), self._devices.index_of(device)
            return self._devices.gpu(index).pool if count and not 0 <= index < count else None  # raises
        return found.pool

    def _number(self, device: Any, name: str) -> int:
        pool = self._pool(device)
        return 0 if pool is None else getattr(pool, name)

    # ---- Numbers -----------------------------------------------------------------------------------------------------

    def memory_allocated(self, device: Any = None) -> int:
        """The bytes that the tensors of a device occupy.

        >>> import weft as torch
        >>> torch.cuda.memory_allocated() <= torch.cuda.max_memory_allocated()
        True
        """
        return self._number(device, "allocated")

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most bytes that tensors have occupied since the last `reset_peak_memory_stats`."""
        return self._number(device, "most_allocated")

    def memory_reserved(self, device: Any = None) -> int:
        """The bytes that the allocator has taken from the driver: those of tensors, and free blocks for the next tensors."""
        return self._number(device, "reserved")

    def max_memory_reserved(self, device: Any = None) -> int:
        """The most bytes that the allocator has held since the last `reset_peak_memory_stats`."""
        return self._number(device, "most_reserved")

    def memory_stats(self, device: Any = None) -> OrderedDict[str, int]:
        """The allocator's numbers, by PyTorch's names; empty for a device that has not been used.

        Kinds: bytes of tensors (allocated and active), bytes taken from the driver (reserved), tensors (allocation and active), and blocks
        of the driver (segment). Each has the parts `all`, `small_pool` (tensors of up to 1 MiB) and `large_pool`, and these have `current` and
        `peak`, and `allocated` and `freed`, which only grow. Further: `num_ooms` counts OutOfMemoryError, `num_alloc_retries` the allocations that freed unused blocks first.
        """
        return _flat(self.memory_stats_as_nested_dict(device))

    def memory_stats_as_nested_dict(self, device: Any = None) -> dict[str, Any]:
        """As `memory_stats`, with a dict for each kind."""
        pool = self._pool(device)
        if pool is None:
            return {}
        found: dict[str, Any] = {}
        for part, counts in pool.kinds().items():
            for name, values in counts.stats().items():
                found.setdefault(name, {})[part] = values
        return found | {"num_alloc_retries": pool.retries, "num_ooms": pool.failures}

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        """The allocator's numbers as a table to print."""
        return table(
            self.memory_stats(device), self._devices.type, self._devices.index_of(device), abbreviated
        )

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Let all peaks be the present numbers.

        Raises: the error of the type without a device.
        """
        self._devices.gpu(device).pool.reset_peaks()

    def reset_accumulated_memory_stats(self, device: Any = None) -> None:
        """Let the counts of what was allocated and freed begin at zero.

        Raises: the error of the type without a device.
        """
        self._devices.gpu(device).pool.reset_counts()

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """The free and the total bytes of a device. Other programs may have taken some of them.

        Raises: the error of the type without a device.
        """
        found = self._devices.gpu(device)
        total = found.runtime.total_memory
        return min(found.runtime.free_memory(), total - found.pool.reserved), total

    def host_memory_stats(self) -> OrderedDict[str, int]:
        """Numbers of pinned memory, by PyTorch's names; empty if no device has been used. Freed memory goes back to the driver at once."""
        return _flat(self.host_memory_stats_as_nested_dict())

    def host_memory_stats_as_nested_dict(self) -> dict[str, Any]:
        """As `host_memory_stats`, with a dict for each kind."""
        return HOST.stats() if self._devices.is_initialized() else {}

    def reset_peak_host_memory_stats(self) -> None:
        """Let the peaks of pinned memory be the present numbers."""
        HOST.reset_peaks()

    def reset_accumulated_host_memory_stats(self) -> None:
        """Let the counts of pinned memory begin at zero."""
        HOST.reset_counts()

    # ---- What the allocator does -------------------------------------------------------------------------------------

    def empty_cache(self) -> None:
        """Give memory without tensors back to the driver, on all devices."""
        for each in self._devices.started():
            each.pool.release_free()

    def get_allocator_backend(self) -> str:
        """The name of the allocator: "native"."""
        return "native"

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Let tensors of a device take at most this part of its memory. Beyond it OutOfMemoryError is raised.

        Raises: TypeError for anything but a float, ValueError unless it is from 0 to 1, the error of the type without a device.
        """
        pool = self._devices.gpu(device).pool
        if not isinstance(fraction, float):
            raise TypeError("Invalid type for fraction argument, must be `float`")
        if not 0 <= fraction <= 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        pool.fraction = fraction

    def get_per_process_memory_fraction(self, device: Any = None) -> float:
        """The part of the memory of a device that its tensors may take: 1.0 unless `set_per_process_memory_fraction` has set another.

        Raises: the error of the type without a device.
        """
        return self._devices.gpu(device).pool.fraction

    def caching_allocator_alloc(self, size: int, device: Any = None, stream: Any = None) -> int:
        """The address of so many bytes on a device, which stay until `caching_allocator_delete`. They belong to a stream, or to the current one.

        stream: a Stream, or the driver's handle of one.

        Raises: the error of the type without a device, TypeError for another `stream`.
        """
        gpu = self._devices.gpu(device)
        with streams.given_to(_stream_of(stream, gpu.device)):
            storage = gpu.allocate(size)
        self._lent[storage.ptr] = storage
        return storage.ptr

    def caching_allocator_delete(self, mem_ptr: int) -> None:
        """Give back what `caching_allocator_alloc` returned.

        Raises: ValueError for another address.
        """
        if self._lent.pop(mem_ptr, None) is None:
            raise ValueError(f"caching_allocator_delete: caching_allocator_alloc did not give {mem_ptr:#x}")

    # ---- Snapshots ---------------------------------------------------------------------------------------------------

    def memory_snapshot(
        self, mempool_id: tuple[int, int] | None = None, include_traces: bool = True
    ) -> list[dict[str, Any]]:
        """All segments of the used devices and the blocks that they are cut into, in PyTorch's form; `mempool_id`: of one pool only.

        Blocks have `frames` while `_record_memory_history` records them. `requested_size` is the size of the block.
        """
        return [
            segment
            for each in self._devices.started()
            for segment in _segments(each)
            if mempool_id is None or segment["segment_pool_id"] == tuple(mempool_id)
        ]

    def _snapshot(self, device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
        """Segments, and the events of each device since `_record_memory_history`."""
        traces: list[list[dict[str, Any]]] = [[] for _ in range(self._devices.device_count())]
        for each in self._devices.started():
            history = history_of(each.pool.history)
            if history is not None and history.events is not None:
                traces[each.device.index] = list(history.events)
        return {
            "segments": self.memory_snapshot(),
            "device_traces": traces,
            "allocator_settings": {"backend": self.get_allocator_backend()},
            "external_annotations": [],
        }

    def _dump_snapshot(
        self, filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
    ) -> None:
        """Write `_snapshot()` as a pickle, which pytorch.org/memory_viz draws."""
        with open(filename, "wb") as file:
            pickle.dump(self._snapshot(), file)

    def _record_memory_history(
        self,
        enabled: str | bool | None = "all",
        context: str | None = "all",
        stacks: str = "all",
        max_entries: int = sys.maxsize,
        device: Any = None,
        clear_history: bool = False,
        **options: Any,
    ) -> None:
        """Record who allocates from now on: "state" for the blocks in use, "all" for all events as well, None for nothing.

        Lines are those of the program; without `context` there are none. `stacks` changes nothing, because no frames of C++ are recorded.

        Raises: the error of the type without a device, ValueError for another word.
        """
        self._devices.init()
        places = range(self._devices.device_count()) if device is None else [device]
        for place in places:
            gpu = self._devices.gpu(place)
            history = history_for(enabled, context, max_entries, gpu.stream_handle)
            gpu.pool.history = None if history is None else history.note


def _stream_of(stream: Any, where: Any) -> streams.Stream:
    if stream is None:
        return streams.current_stream(where)
    if isinstance(stream, streams.Stream):
        return stream
    if not isinstance(stream, int):
        raise TypeError(
            "Invalid type for stream argument, must be a stream or `int` representing a pointer to an existing stream"
        )
    return streams.named_stream(where, stream)


def _flat(nested: Mapping[str, Any]) -> OrderedDict[str, int]:
    return OrderedDict(sorted(_leaves("", nested)))


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, int]]:
    if not isinstance(value, Mapping):
        yield prefix, value
        return
    for name, part in value.items():
        yield from _leaves(f"{prefix}.{name}" if prefix else name, part)


def _segments(gpu: Any) -> Iterator[dict[str, Any]]:
    history = history_of(gpu.pool.history)
    frames = {} if history is None else history.frames
    awaited = gpu.pool.awaited()
    for arena in gpu.pool.arenas:
        for heap in arena.heaps:
            for address, nbytes in sorted(heap.segments.items()):
                blocks = [memory_block(block, frames, awaited) for block in heap.blocks_of(address)]
                yield memory_segment(
                    address,
                    nbytes,
                    blocks,
                    gpu.device.index,
                    gpu.stream_handle(heap.stream),
                    is_small=heap.is_small,
                    pool=arena.id,
                )


def memory_segment(
    address: int,
    nbytes: int,
    blocks: Sequence[dict[str, Any]],
    device: int = 0,
    stream: int = 0,
    *,
    is_small: bool,
    pool: tuple[int, int] = (0, 0),
) -> dict[str, Any]:
    """A segment in PyTorch's form, with the blocks that it is cut into."""
    used = sum(each["size"] for each in blocks if each["state"] != "inactive")
    return {
        "device": device,
        "address": address,
        "total_size": nbytes,
        "allocated_size": sum(each["size"] for each in blocks if each["state"] == "active_allocated"),
        "active_size": used,
        "requested_size": used,
        "stream": stream,
        "segment_type": "small" if is_small else "large",
        "segment_pool_id": pool,
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }


def memory_block(
    block: tuple[int, int, bool], frames: Mapping[int, list], awaited: Container[int] = ()
) -> dict[str, Any]:
    """A block in PyTorch's form. awaited: the addresses of those without a tensor that a stream still uses."""
    address, nbytes, is_free = block
    used = "active_awaiting_free" if address in awaited else "active_allocated"
    return {
        "address": address,
        "size": nbytes,
        "requested_size": nbytes,
        "state": "inactive" if is_free else used,
        "frames": [] if is_free else frames.get(address, []),
    }


class MemoryPool:
    """Memory for the tensors that are made in `use_mem_pool`, and for no others.

    Raises: the error of the type without a device, NotImplementedError for an `allocator` of C.
    """

    _devices: Devices

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False):
        if allocator is not None or use_on_oom or no_split:
            raise NotImplementedError(
                "MemPool: weft has its own allocator only, without use_on_oom and no_split"
            )
        self.id = new_pool_id()
        self.allocator = None
        self._arenas: dict[Any, Any] = {}  # by the allocator of their device
        self._arena(self._devices.gpu())

    def _arena(self, gpu: Any) -> Any:
        found = self._arenas.get(gpu.pool)
        if found is None:
            found = self._arenas[gpu.pool] = gpu.pool.arena(self.id)
        return found

    def use_count(self) -> int:
        """How many MemPools, contexts and graphs use the memory."""
        return max(arena.users for arena in self._arenas.values())

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The segments of the pool, as `memory_snapshot` describes them."""
        return Memory(self._devices).memory_snapshot(self.id)

    def __del__(self) -> None:
        for pool, arena in getattr(self, "_arenas", {}).items():
            pool.leave(arena)


class PoolContext(Restoring):
    """A context in which tensors of a device get their memory from a MemPool."""

    def __init__(self, devices: Devices, pool: MemoryPool, device: Any):
        self._gpu = devices.gpu(device)
        self._arena = pool._arena(self._gpu)
        self._pool: Any = None
        self._outer: Any = None

    def __enter__(self) -> None:
        pool = self._gpu.pool
        pool.arena(self._arena.id)
        self._outer = pool.choose(self._arena)
        self._pool = pool

    def _restore(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.choose(self._outer)
            pool.leave(self._arena)
