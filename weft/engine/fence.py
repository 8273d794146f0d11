"""The allocator of the tests: an access outside a block, or to a block that was freed, is a segmentation fault.

Each block lies on pages of its own between pages that cannot be read. With WEFT_FENCE=after it ends at the byte where
readable memory ends, with WEFT_FENCE=before it begins where readable memory begins, with WEFT_FENCE=either it does one of the
two. A new block is filled with 0xFF, so that memory read before it is written shows as NaN, -1 or 255. A freed block becomes
unreadable at once, and its addresses serve no other block until several arenas of addresses have been used up.

The same switch makes the workers share every loop that may be shared (`kernel.py`, `gemm.py`), whatever its size.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
from collections import deque

from ..core.out_of_memory import out_of_memory
from . import memory

PAGE = mmap.PAGESIZE
PATTERN = 0xFF
# Bytes. Only the two ends of larger blocks are filled, so that tests may allocate 10 GiB that they never touch.
FILLED = 1 << 26
ARENA = 1 << 31  # bytes of address space, not of memory
RETIRED = 4  # how many used-up arenas stay unreadable before the oldest goes back to the system

LARGEST = 1 << 47  # bytes; there are no more addresses, and size_t would cut numbers from 2**64 on
_NO_ACCESS, _READ_WRITE = 0, mmap.PROT_READ | mmap.PROT_WRITE
# Addresses without access take no memory. The system counts those of a block when it becomes readable, and may refuse.
_RESERVED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_FIXED = 0x10  # MAP_FIXED

_system = ctypes.CDLL(None, use_errno=True)
_system.mmap.restype = ctypes.c_void_p
_system.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
_system.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_system.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class _Arena:
    """A range of addresses, unreadable at first, that blocks are cut from in ascending order."""

    __slots__ = ("start", "size", "next", "live")

    def __init__(self, size: int):
        self.start = _map(None, size, _RESERVED)
        self.size = size
        self.next = self.start + PAGE  # the page before the first block stays unreadable
        self.live = 0  # blocks in use

    def cut(self, size: int) -> int | None:
        """The address of `size` bytes with an unreadable page behind them, or None if they do not fit."""
        start = self.next
        if start + size + PAGE > self.start + self.size:
            return None
        self.next = start + size + PAGE
        self.live += 1
        return start


_arena = None
_retired: deque[_Arena] = deque()
_blocks: dict[int, tuple[int, int, _Arena]] = {}  # address -> first byte and size of its pages, arena
_in_use = 0
_turns = itertools.count()


class FencedBin(memory.LargeBin):
    """A bin of blocks of exactly `size` bytes, which is always empty: no block serves twice."""

    __slots__ = ()

    def take(self, nbytes: int) -> int:
        with memory._lock:
            try:
                address = _take(self.size)
            except OSError as error:
                facts = f" The fence holds {len(_blocks)} blocks, each of which takes 2 of vm.max_map_count mappings."
                raise out_of_memory(nbytes, facts) from error
            self.total += 1
            _count(self.size)
        return address

    def append(self, address: int) -> None:
        if memory is None:  # the interpreter is shutting down and has cleared this module
            return
        with memory._lock:
            _give_back(address)
            self.total -= 1
            _count(-self.size)


def _take(nbytes: int) -> int:
    size = (nbytes + PAGE - 1) // PAGE * PAGE
    if size >= LARGEST:
        raise OSError(f"{nbytes} bytes are more than there are addresses")
    start, arena = _cut(size)
    if size and _system.mprotect(start, size, _READ_WRITE):
        arena.live -= 1
        raise _error()
    address = start + (size - nbytes if _ends_at_the_fence() else 0)
    _blocks[address] = start, size, arena
    _fill(start, size)
    return address


def _ends_at_the_fence() -> bool:
    """Whether the next block ends there, and does not begin there."""
    if memory.FENCE != "either":
        return memory.FENCE == "after"
    # The Thue-Morse sequence: no block of a loop that allocates some blocks in each turn has the same side in all turns.
    return next(_turns).bit_count() % 2 == 0


def _cut(size: int) -> tuple[int, _Arena]:
    global _arena
    start = None if _arena is None else _arena.cut(size)
    if _arena is None or start is None:
        if _arena is not None:
            _retired.append(_arena)
        _unmap_oldest()
        _arena = _Arena(max(ARENA, size + 2 * PAGE))
        start = _arena.cut(size)
        assert start is not None
    return start, _arena


def _unmap_oldest() -> None:
    for arena in [arena for arena in _retired if not arena.live][:-RETIRED]:
        _retired.remove(arena)
        _system.munmap(arena.start, arena.size)


def _fill(start: int, size: int) -> None:
    part = size if size <= FILLED else PAGE
    ctypes.memset(start, PATTERN, part)
    ctypes.memset(start + size - part, PATTERN, part)


def _give_back(address: int) -> None:
    start, size, arena = _blocks.pop(address)
    arena.live -= 1
    if size:
        _map(start, size, _RESERVED | _FIXED)  # unlike mprotect, this also gives the pages back


def _map(address: int | None, size: int, flags: int) -> int:
    found = _system.mmap(address, size, _NO_ACCESS, flags, -1, 0)
    if found == ctypes.c_void_p(-1).value:
        raise _error()
    return found


def _error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


def _count(nbytes: int) -> None:
    # Summing over all bins would take longer than the rest, because under the fence there is a bin for each size.
    global _in_use
    _in_use += nbytes
    memory.note_peak(_in_use)
