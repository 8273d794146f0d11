"""The caching allocator of a GPU: freed blocks are kept for the next tensors, because the driver takes long and waits for kernels.

All work of a stream is done in order. So a block may be given to another tensor of its stream while a kernel that was launched before still uses it:
blocks are those of the stream that was the current one when they were allocated. If another stream uses a block as well
(`Tensor.record_stream`), its bin is a `SharedBin`, which keeps it until the work of that stream is done.

A block goes back to the `Bin` of its size, and the next tensor of this size takes it from there. Only if the bin is empty, another free block is cut,
after free neighbours have been merged if none is large enough. The driver is asked last.
"""

from __future__ import annotations

import contextlib
import sys
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from ...core.locks import new_lock
from ...core.out_of_memory import OutOfMemoryError
from ...core.streams import chosen
from ..base import Mark
from .pinned import numbers
from .runtime import Runtime

SMALLEST = 512  # bytes of a block
LARGE = 1 << 20  # blocks from here on are multiples of
STEP = 2 << 20
# Bytes that the driver is asked for at once, as in PyTorch: for blocks up to LARGE, and for larger ones up to MIDDLE.
SMALL_SEGMENT, MIDDLE_SEGMENT, MIDDLE = 2 << 20, 20 << 20, 10 << 20


def rounded(nbytes: int) -> int:
    """Return the size of the block for so many bytes."""
    step = SMALLEST if nbytes <= LARGE else STEP
    return max(SMALLEST, -(-nbytes // step) * step)


class Bin:
    """The free blocks of one size. Storages give their blocks back by `append`."""

    __slots__ = ("size", "free", "heap", "stream", "counts", "others", "pool")

    def __init__(self, size: int, heap: Heap, pool: Pool):
        self.size, self.stream = size, heap.stream
        self.free: list[int] = []
        self.heap = heap
        self.counts, self.others = pool.small, pool.large
        if not heap.is_small:
            self.counts, self.others = self.others, self.counts
        self.pool = pool

    def append(self, address: int) -> None:
        """Keep a block for the next tensor of this size."""
        self.free.append(address)
        pool, counts = self.pool, self.counts
        counts.allocated -= self.size
        counts.active -= 1
        if pool.history is not None:
            pool.history("free_completed", address, self.size, self.stream)


class SharedBin:
    """The bin of a block that other streams use as well. Its memory is free when the work is done that these have been given when it is returned.

    streams: their numbers; None for all streams of the device.
    """

    __slots__ = ("bin", "size", "streams")
    stream = None  # no stream may take over the memory without a look at the others

    def __init__(self, bin: Bin, streams: set[int] | None):
        self.bin, self.size, self.streams = bin, bin.size, streams

    def append(self, address: int) -> None:
        """Keep the block until the other streams are done, then for the next tensor of its size."""
        self.bin.pool.await_streams(self.bin, address, self.streams)


class Heap:
    """Segments of the driver for a stream, and the blocks that they are cut into: all of at most LARGE bytes, or all larger."""

    def __init__(self, pool: Pool, is_small: bool, stream: int):
        self._pool, self.is_small, self.stream = pool, is_small, stream
        self._bins: dict[int, Bin] = {}
        self._sizes: list[int] = []  # of the bins, in order
        self.segments: dict[int, int] = {}  # bytes by address
        self.blocks: dict[int, int] = {}  # bytes of all blocks, free or not, by address

    def bin(self, size: int) -> Bin:
        found = self._bins.get(size)
        if found is None:
            with self._pool.lock:
                found = self._bins.setdefault(size, Bin(size, self, self._pool))
                if size not in self._sizes:
                    insort(self._sizes, size)
        return found

    def blocks_of(self, segment: int) -> Iterator[tuple[int, int, bool]]:
        """The blocks of a segment in their order: address, bytes, and whether they are free."""
        free = {address for bin in list(self._bins.values()) for address in tuple(bin.free)}
        address, end = segment, segment + self.segments[segment]
        while address < end:
            nbytes = self.blocks[address]
            yield address, nbytes, address in free
            address += nbytes

    def segment_size(self, size: int) -> int:
        """How many bytes to ask the driver for when a block is needed."""
        if self.is_small:
            return SMALL_SEGMENT
        return MIDDLE_SEGMENT if size < MIDDLE else size

    def add(self, address: int, nbytes: int, size: int) -> None:
        """Take over memory of the driver, whose first block is for a tensor."""
        self.segments[address] = self.blocks[address] = nbytes
        self._cut(address, nbytes, size)

    def cut(self, size: int) -> int | None:
        """The address of a block of this size from a larger free one; None if there is none."""
        found = self._smallest(size)
        if found is None and self._merge():
            found = self._smallest(size)
        return found

    def _smallest(self, size: int) -> int | None:
        for whole in self._sizes[bisect_left(self._sizes, size) :]:
            free = self._bins[whole].free
            try:
                if not free:
                    continue
                address = free.pop()
            except IndexError:  # another thread was faster
                continue
            self._cut(address, whole, size)
            return address
        return None

    def _cut(self, address: int, whole: int, size: int) -> None:
        if whole > size:
            self.blocks[address], self.blocks[address + size] = size, whole - size
            self.bin(whole - size).free.append(address + size)

    def _merge(self) -> bool:
        """Make one block of free blocks that lie side by side in a segment; whether there were any."""
        free: list[tuple[int, int]] = []
        merged = free
        try:
            free.extend(self._taken())
            merged = self._joined(free)
        finally:  # also after Ctrl-C
            for address, _ in free:
                del self.blocks[address]
            self.blocks.update(merged)
            for address, size in merged:
                self.bin(size).free.append(address)
        return len(merged) < len(free)

    def _joined(self, free: list[tuple[int, int]]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for address, size in sorted(free):
            if found and sum(found[-1]) == address and address not in self.segments:
                first, before = found[-1]
                found[-1] = first, before + size
            else:
                found.append((address, size))
        return found

    def _taken(self) -> Iterator[tuple[int, int]]:
        """Take all free blocks: address and bytes."""
        for bin in list(self._bins.values()):
            for _ in range(len(bin.free)):
                try:
                    yield bin.free.pop(), bin.size
                except IndexError:  # another thread was faster
                    break

    def release_free(self, release: Callable[[int], None]) -> int:
        """Give segments without a tensor back to the driver. Returns their bytes."""
        self._merge()
        released = 0
        for address, nbytes in list(self.segments.items()):
            try:
                self.bin(nbytes).free.remove(address)
            except ValueError:  # a tensor has a part of it
                continue
            del self.segments[address], self.blocks[address]
            release(address)
            released += nbytes
        return released


class Arena:
    """The memory for some of the tensors of a device: those of the program, of a graph, or of a `torch.cuda.MemPool`."""

    def __init__(self, pool: Pool, id: tuple[int, int]):
        self.id = id
        self._pool = pool
        # By the number of the stream: for small blocks, and for large ones.
        self._heaps: dict[int, tuple[Heap, Heap]] = {}
        self.users = 0  # graphs and MemPools. Its memory goes back to the driver when there is none any more

    @property
    def heaps(self) -> list[Heap]:
        return [heap for both in list(self._heaps.values()) for heap in both]

    def bin(self, nbytes: int) -> Bin:
        """The bin of the blocks for so many bytes, of the current stream."""
        return self.bin_of(self._pool.stream(), nbytes)

    def bin_of(self, stream: int, nbytes: int) -> Bin:
        """The bin of the blocks of a stream for so many bytes."""
        heaps = self._heaps.get(stream)
        if heaps is None:
            heaps = Heap(self._pool, True, stream), Heap(self._pool, False, stream)
            heaps = self._heaps.setdefault(stream, heaps)
        size = rounded(nbytes)
        return heaps[size > LARGE].bin(size)


class Counts:
    """How many bytes tensors have and were taken from the driver, how many tensors and segments there are; and the most of each."""

    __slots__ = (
        *("allocated", "reserved", "active", "segments", "waiting", "waiting_blocks"),
        *("most_allocated", "most_reserved", "most_active", "most_segments"),
        *("bytes_given", "times_given", "bytes_taken", "segments_taken"),
    )

    def __init__(self) -> None:
        self.allocated = self.reserved = self.active = self.segments = 0
        # Bytes and number of blocks without tensors that a stream still uses.
        self.waiting = self.waiting_blocks = 0
        self.most_allocated = self.most_reserved = self.most_active = self.most_segments = 0
        self.bytes_given = self.times_given = 0  # to tensors, since `reset_counts`
        self.bytes_taken = self.segments_taken = 0  # from the driver, since then

    def take_segment(self, nbytes: int) -> None:
        """The driver gives a segment."""
        self.bytes_taken += nbytes
        self.segments_taken += 1
        self.reserved += nbytes
        self.segments += 1
        self.most_reserved = max(self.most_reserved, self.reserved)
        self.most_segments = max(self.most_segments, self.segments)

    def return_segments(self, count: int, nbytes: int) -> None:
        """So many segments go back to the driver."""
        self.segments -= count
        self.reserved -= nbytes

    def stats(self) -> dict[str, dict[str, int]]:
        """By PyTorch's names: numbers now, at most, given since `reset_counts`, and given back."""
        used, blocks = self.allocated + self.waiting, self.active + self.waiting_blocks
        return {
            "active_bytes": numbers(used, max(used, self.most_allocated), self.bytes_given),
            "allocated_bytes": numbers(self.allocated, self.most_allocated, self.bytes_given),
            "active": numbers(blocks, max(blocks, self.most_active), self.times_given),
            "allocation": numbers(self.active, self.most_active, self.times_given),
            "reserved_bytes": numbers(self.reserved, self.most_reserved, self.bytes_taken),
            "segment": numbers(self.segments, self.most_segments, self.segments_taken),
        }

    def reset_peaks(self) -> None:
        """Let all peaks be the present numbers."""
        self.most_allocated, self.most_reserved = self.allocated, self.reserved
        self.most_active, self.most_segments = self.active, self.segments

    def reset_counts(self) -> None:
        """Count from the present tensors on."""
        self.bytes_given, self.times_given = self.allocated, self.active
        self.bytes_taken, self.segments_taken = self.reserved, self.segments


class Pool:
    """The blocks of one device, and how many bytes they are.

    stream: returns the number of the current stream of this thread. marks: returns marks of the streams with these numbers, or of all (None), without
    that of the block itself.
    """

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        stream: Callable[[], int],
        marks: Callable[[set[int] | None, int], list[Mark]],
    ):
        self.small, self.large = Counts(), Counts()
        self.most_allocated = self.most_active = self.most_reserved = self.most_segments = (
            0  # of both together
        )
        self._runtime, self._name = runtime, name
        self.stream, self._marks = stream, marks
        self.lock = new_lock()
        self.program = Arena(self, (0, 0))
        self.arenas = [self.program]
        self._private: Arena | None = None  # of the graph or MemPool whose tensors are made now
        # Where tensors get their memory now; None for the program's arena and the default stream, which needs no look at what the thread has chosen.
        self.current: Arena | None = None
        self._is_ending = sys.is_finalizing
        self._awaited: list[tuple[list[Mark], Bin, int]] = []  # blocks that other streams still use
        self.fraction = 1.0  # of the device's memory, which may be taken from the driver
        # Is told of each block: what happened, address, bytes, stream.
        self.history: Callable[[str, int, int, int], None] | None = None
        self.retries = self.failures = 0

    @property
    def allocated(self) -> int:
        """Bytes of tensors."""
        return self.small.allocated + self.large.allocated

    @property
    def active(self) -> int:
        """How many tensors there are."""
        return self.small.active + self.large.active

    @property
    def reserved(self) -> int:
        """Bytes that the driver has given."""
        return self.small.reserved + self.large.reserved

    @property
    def segments(self) -> int:
        """In how many pieces."""
        return self.small.segments + self.large.segments

    def choose(self, arena: Arena | None) -> Arena | None:
        """Let new tensors get their memory from an arena, or from that of the program (None). Returns the one before."""
        before, self._private = self._private, arena
        self.choose_streams()
        return before

    def choose_streams(self) -> None:
        """Called when the number of threads has changed that have chosen a stream."""
        self.current = self._private or (self.program if chosen.count else None)

    # ---- Blocks that several streams use -----------------------------------------------------------------------------------

    def await_streams(self, bin: Bin, address: int, streams: set[int] | None) -> None:
        """Return a block to its bin after the work that streams have been given so far."""
        if self._is_ending():  # the driver may be gone, and nobody needs the block
            return
        marks = self._marks(streams, bin.stream)
        bin.counts.allocated -= bin.size
        bin.counts.active -= 1
        bin.counts.waiting += bin.size
        bin.counts.waiting_blocks += 1
        if self.history is not None:
            self.history("free_requested", address, bin.size, bin.stream)
        self._awaited.append((marks, bin, address))
        self.return_awaited()

    def return_awaited(self) -> None:
        """Return the blocks to their bins that no other stream uses any more."""
        awaited, self._awaited = self._awaited, []
        for each in awaited:
            marks, bin, address = each
            if not all(mark.is_done() for mark in marks):
                self._awaited.append(each)
                continue
            bin.counts.waiting -= bin.size
            bin.counts.waiting_blocks -= 1
            bin.free.append(address)
            if self.history is not None:
                self.history("free_completed", address, bin.size, bin.stream)

    def awaited(self) -> set[int]:
        """The addresses of the blocks that wait for other streams."""
        return {address for _, _, address in self._awaited}

    def arena(self, id: tuple[int, int]) -> Arena:
        """The arena with this number, with one more user."""
        with self.lock:
            found = next((each for each in self.arenas if each.id == id), None)
            if found is None:
                found = Arena(self, id)
                self.arenas.append(found)
            found.users += 1
        return found

    def leave(self, arena: Arena) -> None:
        """Let an arena have one user less. Without users its free memory is the driver's with the next `release_free`."""
        with self.lock:
            arena.users -= 1

    def take(self, bin: Bin, nbytes: int) -> int:
        """Return the address of a block of a bin.

        Raises: OutOfMemoryError, naming `nbytes`, if there is no memory.
        """
        try:
            address = bin.free.pop()
        except IndexError:
            with self.lock:
                address = self._grow(bin, nbytes)
        # Not in a method, because a call would take as long as all of this.
        size, counts, others = bin.size, bin.counts, bin.others
        counts.bytes_given += size
        counts.times_given += 1
        counts.allocated = now = counts.allocated + size
        if now > counts.most_allocated:
            counts.most_allocated = now
        if now + others.allocated > self.most_allocated:
            self.most_allocated = now + others.allocated
        counts.active = now = counts.active + 1
        if now > counts.most_active:
            counts.most_active = now
        if now + others.active > self.most_active:
            self.most_active = now + others.active
        if self.history is not None:
            self.history("alloc", address, bin.size, bin.stream)
        return address

    def _grow(self, bin: Bin, nbytes: int) -> int:
        if self._awaited:
            self.return_awaited()
            with contextlib.suppress(IndexError):  # none of them is of this bin
                return bin.free.pop()
        address = bin.heap.cut(bin.size)
        if address is None:
            address = self._new_segment(bin)
        if address is None:
            self.retries += 1
            if not self._runtime.is_recording:  # a driver that records cannot wait for its work
                self.release_free()
            address = self._new_segment(bin)
        if address is None:
            self.failures += 1
            raise OutOfMemoryError(self._facts(nbytes))
        return address

    def _new_segment(self, bin: Bin) -> int | None:
        """The address of a block of new memory; None if there is not so much."""
        for nbytes in dict.fromkeys((bin.heap.segment_size(bin.size), bin.size)):
            if self.reserved + nbytes > self.fraction * self._runtime.total_memory:
                continue
            try:
                address = self._runtime.allocate(nbytes)
            except MemoryError:
                continue
            bin.heap.add(address, nbytes, bin.size)
            bin.counts.take_segment(nbytes)
            self.most_reserved = max(self.most_reserved, self.reserved)
            self.most_segments = max(self.most_segments, self.segments)
            return address
        return None

    def _facts(self, nbytes: int) -> str:
        return (
            f"{self._name.partition(':')[0].upper()} out of memory. Tried to allocate {_readable(nbytes)}. Device {self._name} has a total capacity of "
            f"{_readable(self._runtime.total_memory)} of which {_readable(self._runtime.free_memory())} is free. Tensors hold "
            f"{_readable(self.allocated)}, and blocks that are kept for new ones {_readable(self.reserved - self.allocated)}."
        )

    def release_free(self) -> None:
        """Give segments without tensors back to the driver, after all work, which may still use blocks whose tensors are gone.

        Those of a graph or a MemPool are kept for it.
        """
        self._runtime.synchronize()
        with self.lock:
            self.return_awaited()
            for arena in [each for each in self.arenas if each is self.program or not each.users]:
                for heap in arena.heaps:
                    before = len(heap.segments)
                    nbytes = heap.release_free(self._runtime.release)
                    counts = self.small if heap.is_small else self.large
                    counts.return_segments(before - len(heap.segments), nbytes)
                if not (arena is self.program or any(heap.segments for heap in arena.heaps)):
                    self.arenas.remove(arena)

    # ---- Numbers for `torch.cuda.memory` -----------------------------------------------------------------------------------

    def kinds(self) -> dict[str, Counts]:
        """The numbers of all blocks, and of small and large ones, by PyTorch's names."""
        self.return_awaited()
        both = Counts()
        for name in Counts.__slots__:
            is_peak = name.startswith("most_")
            setattr(both, name, getattr(self, name) if is_peak else self._sum(name))
        return {"all": both, "small_pool": self.small, "large_pool": self.large}

    def _sum(self, name: str) -> int:
        return getattr(self.small, name) + getattr(self.large, name)

    def reset_peaks(self) -> None:
        """Let all peaks be the present numbers."""
        self.small.reset_peaks()
        self.large.reset_peaks()
        self.most_allocated, self.most_active = self.allocated, self.active
        self.most_reserved, self.most_segments = self.reserved, self.segments

    def reset_counts(self) -> None:
        """Count from the present tensors on."""
        self.small.reset_counts()
        self.large.reset_counts()
        self.retries = self.failures = 0


def _readable(nbytes: int) -> str:
    """As PyTorch writes sizes in these errors: 1.00 GiB, 20.00 MiB."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"
