"""The CPU's caching allocator. Blocks are reused, because touching new pages costs more than most arithmetic.

The address of a block is either in a Storage or in the free list (`bin`) of its size class. Small blocks are cut from slabs. Each
large block has a mapping of its own, in huge pages if the system has them.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os

from ..core.locks import new_lock
from ..core.out_of_memory import out_of_memory
from ..core.settings import refuse_setting

ALIGNMENT = 64
SLAB = 1 << 20
SMALL = 1 << 16  # bytes; blocks up to this size are cut from slabs
HUGE_PAGE = 1 << 21
# By default, Python maps memory that a forked process shares, so that a child would overwrite our tensors. (Windows has no fork.)
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}

# For tests: "after" or "before" has each block end, or begin, at a page that cannot be read, "either" one of the two. See fence.py.
FENCE = os.environ.get("WEFT_FENCE", "")
if FENCE not in ("", "after", "before", "either"):
    refuse_setting(f"WEFT_FENCE must be 'after', 'before' or 'either', not {FENCE!r}")
if FENCE and not PRIVATE:
    refuse_setting(
        "WEFT_FENCE needs memory whose pages can be protected one by one, which weft does not do on Windows; unset it"
    )

_lock = new_lock()


class Bin(list):
    """Holds the free blocks of one size class, and the number of all blocks of that size."""

    __slots__ = ("size", "total")

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.total = 0

    def take(self, nbytes: int) -> int:
        """Return the address of a block, for `nbytes` of its bytes.

        Raises: RuntimeError, naming `nbytes`, if there is no memory.
        """
        while True:
            try:
                return self.pop()
            except IndexError:  # another thread may take the new blocks at once
                self.grow(nbytes)

    def grow(self, nbytes: int) -> None:
        """Add free blocks, because one is needed for `nbytes`.

        Raises: RuntimeError, naming `nbytes`, if there is no memory.
        """
        with _lock:
            try:
                _carve(self) if self.size <= SMALL else _map_large(self, nbytes)
            except (OSError, OverflowError):
                raise out_of_memory(nbytes, f" {allocated()} bytes are in use by tensors.") from None
            note_peak(allocated() + self.size)


class LargeBin(Bin):
    """A bin whose free blocks count towards the bound of the cache."""

    __slots__ = ()

    def append(self, address: int) -> None:
        super().append(address)
        room.value -= self.size
        if room.value < 0:
            trim()


# Bytes of large blocks that may become free before the cache could be above its bound. Adding up the cache after each block would
# take 2 to 3 us (AMD Zen 4), longer than most operations on 10^4 floats.
room = ctypes.c_int64(0)
_bins: dict[int, Bin] = {}
_mappings: dict[int, mmap.mmap] = {}  # large blocks: address -> the object that keeps the pages
_slabs: dict[int, mmap.mmap] = {}  # address -> the object that keeps the pages
_peak = 0


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 8 << 30


CACHE_LIMIT = min(_physical_memory() // 8, 2 << 30)


def size_class(nbytes: int) -> int:
    """The size of the blocks that serve `nbytes`: at most an eighth larger, a multiple of 64."""
    if nbytes <= 1024:
        return max(nbytes + 63 & ~63, ALIGNMENT)
    step = 1 << ((nbytes - 1).bit_length() - 4)
    return (nbytes + step - 1) // step * step


def bin_for(nbytes: int) -> Bin:
    if FENCE:
        size = nbytes
    else:  # for small sizes without a call, because plans for new sizes ask often
        size = nbytes + 63 & ~63 if 0 < nbytes <= 1024 else size_class(nbytes)
    found = _bins.get(size)
    if found is None:
        with _lock:
            found = _bins.setdefault(size, _new_bin(size))
    return found


def _new_bin(size: int) -> Bin:
    if FENCE:
        from .fence import FencedBin  # only tests need it

        return FencedBin(size)
    return Bin(size) if size <= SMALL else LargeBin(size)


# A signal handler may raise after each call. So what belongs together is changed without a call in between.


def _carve(bin: Bin) -> None:
    slab = mmap.mmap(-1, SLAB, **PRIVATE)
    start = _address(slab)
    count = SLAB // bin.size
    blocks = range(start + (count - 1) * bin.size, start - 1, -bin.size)
    _slabs[start] = slab
    bin.total += count
    bin.extend(blocks)


def _map_large(bin: Bin, nbytes: int) -> None:
    try:
        block = _mapping(bin.size, nbytes)
    except (OSError, OverflowError):
        release_cached(0)
        block = _mapping(bin.size, nbytes)
    address = _address(block)
    _mappings[address] = block
    bin.total += 1
    bin += (address,)


def _mapping(size: int, nbytes: int) -> mmap.mmap:
    """Pages for a block, of which the first `nbytes` are about to be used."""
    # One huge page more than needed lets the kernel align the block itself; untouched pages cost nothing.
    block = mmap.mmap(-1, size + (HUGE_PAGE if size >= HUGE_PAGE else 0), **PRIVATE)
    if size >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        # Small pages behind the last whole huge page: another huge page would be 2 MiB of which the block uses a part.
        start = _address(block)
        whole = max((start + nbytes) // HUGE_PAGE * HUGE_PAGE - start, 0)
        with contextlib.suppress(OSError):  # a kernel without huge pages refuses the advice
            if whole:
                block.madvise(mmap.MADV_HUGEPAGE, 0, whole)
            block.madvise(mmap.MADV_NOHUGEPAGE, whole)
    return block


def _address(block: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(block))


def cached_large_bytes() -> int:
    return sum(len(bin) * bin.size for bin in list(_bins.values()) if bin.size > SMALL)


def trim() -> None:
    """Give free large blocks back while the cache is above its bound."""
    if cached_large_bytes() > CACHE_LIMIT:
        release_cached(CACHE_LIMIT // 2)
    room.value = CACHE_LIMIT - cached_large_bytes()


def release_cached(keep: int) -> None:
    """Give free large blocks back to the system until at most `keep` bytes of them remain."""
    with _lock:
        excess = cached_large_bytes() - keep
        for bin in sorted(_bins.values(), key=lambda bin: -bin.size):
            while excess > 0 and bin.size > SMALL and _unmap(bin):
                excess -= bin.size


def _unmap(bin: Bin) -> bool:
    """Give a free block back to the system. False if there is none, because other threads take blocks without the lock."""
    taken: list[int] = []
    try:
        # A signal handler that raises would lose the result of `bin.pop()`.
        taken.extend(map(bin.pop, (-1,)))
    except IndexError:
        if taken:
            raise
        return False
    finally:
        if taken:
            bin.total -= 1
            del _mappings[taken[0]]  # the last reference to the pages
    return True


def _reserved() -> int:
    own_mappings = [bin for bin in list(_bins.values()) if isinstance(bin, LargeBin)]
    return len(_slabs) * SLAB + sum(bin.total * bin.size for bin in own_mappings)


def allocated() -> int:
    """Bytes of the blocks that are in use; a block has the size of its class."""
    return sum((bin.total - len(bin)) * bin.size for bin in list(_bins.values()))


def note_peak(current: int) -> None:
    # Memory in use only reaches a new height when a bin had to grow.
    global _peak
    _peak = max(_peak, current)


def memory_stats() -> dict[str, int]:
    """Return bytes: held by tensors, the highest value of that since the last reset, and taken from the system in all.

    >>> import weft
    >>> sorted(weft.cpu.memory_stats())
    ['allocated_bytes.all.current', 'allocated_bytes.all.peak', 'reserved_bytes.all.current']
    """
    current = allocated()
    return {
        "allocated_bytes.all.current": current,
        "allocated_bytes.all.peak": max(_peak, current),
        "reserved_bytes.all.current": _reserved(),
    }


def reset_peak_memory_stats() -> None:
    global _peak
    _peak = allocated()
