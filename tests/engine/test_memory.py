import ctypes
import errno
import gc
import mmap
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.engine import memory

unfenced = pytest.mark.skipif(bool(memory.FENCE), reason="the fence gives no block twice, and aligns none")


def allocated():
    gc.collect()
    return weft.cpu.memory_stats()["allocated_bytes.all.current"]


@given(st.integers(0, 1 << 40))
def test_size_classes_waste_little(nbytes):
    size = memory.size_class(nbytes)
    assert size >= nbytes and size % 64 == 0
    assert size <= max(64, nbytes + 63, nbytes * 9 // 8 + 64)


@unfenced
def test_memory_is_counted_and_given_back():
    before = allocated()
    held = [weft.empty(1000), weft.empty(3_000_000)]
    assert allocated() - before >= 4 * 3_001_000
    address = held[1].data_ptr()
    del held
    assert allocated() == before
    assert weft.empty(3_000_000).data_ptr() == address  # the block was kept for reuse


def test_peak_sees_what_is_gone():
    weft.cpu.reset_peak_memory_stats()
    before = allocated()
    del (big := [weft.empty(40_000_000)])[:]
    assert not big
    assert weft.cpu.memory_stats()["allocated_bytes.all.peak"] - before >= 160_000_000


@unfenced
def test_storages_are_aligned():
    for size in (1, 3, 100, 5000, 70_000, 3_000_000):
        assert weft.empty(size, dtype=weft.uint8).data_ptr() % 64 == 0


def test_cache_is_bounded():
    weft.empty(memory.CACHE_LIMIT // 4, dtype=weft.uint8)
    for extra in range(12):
        weft.empty(memory.CACHE_LIMIT // 4 + (extra << 24), dtype=weft.uint8)
    assert memory.cached_large_bytes() <= memory.CACHE_LIMIT
    memory.release_cached(0)
    assert memory.cached_large_bytes() == 0


def test_too_much_is_an_error_not_a_crash():
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        weft.empty(1 << 46)
    assert weft.ones(3).sum().item() == 3


@unfenced
def test_the_cache_is_given_up_before_an_allocation_fails(monkeypatch):
    mapping = memory._mapping

    def full(size, nbytes):
        if memory.cached_large_bytes() > 0:
            raise OSError("no memory left")
        return mapping(size, nbytes)

    memory.release_cached(0)
    weft.empty(1 << 20)
    assert memory.cached_large_bytes() > 0
    monkeypatch.setattr(memory, "_mapping", full)
    assert weft.zeros(1 << 24, dtype=weft.uint8).sum() == 0


@unfenced
@pytest.mark.skipif(sys.platform != "linux", reason="the pages in memory are listed in /proc")
def test_a_large_block_takes_no_huge_page_of_which_it_uses_a_part():
    nbytes = 3 * memory.HUGE_PAGE + 5000
    memory.release_cached(0)
    block = memory._mapping(memory.size_class(nbytes), nbytes)
    start = memory._address(block)
    ctypes.memset(start, 1, nbytes)
    assert nbytes <= _resident(start) <= nbytes + 2 * mmap.PAGESIZE
    del block


def test_a_kernel_without_huge_pages_gives_small_ones(monkeypatch):
    class Mapping(mmap.mmap):
        def madvise(self, *arguments):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(memory.mmap, "mmap", Mapping)
    assert len(memory._mapping(2 * memory.HUGE_PAGE, 2 * memory.HUGE_PAGE)) >= 2 * memory.HUGE_PAGE


def _resident(address: int) -> int:
    """Bytes in memory of the regions of the map that begin within 4 huge pages from an address on."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = address <= int(line.split("-")[0], 16) < address + 4 * memory.HUGE_PAGE
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1]) * 1024
    return found


def test_arrays_keep_memory_alive():
    array = weft.arange(100_000).numpy()
    for _ in range(20):
        weft.zeros(100_000, dtype=weft.int64)
    np.testing.assert_array_equal(array, np.arange(100_000))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("count", [4, 1_000_000])
def test_a_forked_process_does_not_write_into_our_tensors(count):
    values = weft.zeros(count)
    child = os.fork()
    if child == 0:
        values.numpy()[:] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert not values.any()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_allocates_though_another_thread_was_allocating():
    taken = threading.Event()

    def hold():
        with memory._lock:
            taken.set()
            time.sleep(0.05)

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        weft.zeros(memory.SLAB // 4 + 4096)  # a size that no free block has
        os._exit(0)
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@unfenced
def test_so_much_of_the_cache_is_kept_as_is_asked_for():
    memory.release_cached(0)
    blocks = [weft.zeros(1 << 20, dtype=weft.uint8) for _ in range(4)]
    size = memory.size_class(1 << 20)
    del blocks
    assert memory.cached_large_bytes() >= 4 * size
    memory.release_cached(2 * size)
    assert memory.cached_large_bytes() == 2 * size
    memory.release_cached(2 * size)
    assert memory.cached_large_bytes() == 2 * size


@unfenced
def test_threads_take_the_last_blocks_while_the_cache_is_trimmed():
    """`Storage` takes free blocks without the lock."""
    bin = memory.bin_for(3 << 20)
    assert isinstance(bin, memory.LargeBin) and not bin
    total = bin.total
    assert memory._unmap(bin) is False and bin.total == total
    block = weft.zeros(3 << 20, dtype=weft.uint8)
    del block
    assert memory._unmap(bin) and bin.total == total and not bin
