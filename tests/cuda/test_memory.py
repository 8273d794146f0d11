"""The numbers of the caching allocator, errors without memory, and pinned memory."""

import gc

import pytest

import weft

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _nothing_left():
    gc.collect()
    weft.cuda.empty_cache()


def test_what_tensors_occupy():
    before, reserved = weft.cuda.memory_allocated(), weft.cuda.memory_reserved()
    weft.empty(1, device="cuda")
    weft.cuda.reset_peak_memory_stats()
    x = weft.empty(4 * MIB, dtype=weft.uint8, device="cuda")
    assert weft.cuda.memory_allocated() == weft.cuda.memory_allocated("cuda:0") == before + 4 * MIB
    assert weft.cuda.memory_reserved() >= reserved + 4 * MIB
    del x
    assert weft.cuda.memory_allocated() == before
    assert weft.cuda.max_memory_allocated() == before + 4 * MIB
    assert weft.cuda.memory_reserved() >= reserved + 4 * MIB  # kept for the next tensor
    weft.cuda.empty_cache()
    assert weft.cuda.memory_reserved() < reserved + 4 * MIB
    assert weft.cuda.max_memory_reserved() >= reserved + 4 * MIB
    weft.cuda.reset_peak_memory_stats()
    assert weft.cuda.max_memory_allocated() == weft.accelerator.max_memory_allocated() == before


def test_the_numbers_by_name():
    weft.empty(1, device="cuda")
    weft.cuda.reset_accumulated_memory_stats()
    before = weft.cuda.memory_stats()
    tensors = [weft.empty(12 * MIB, dtype=weft.uint8, device="cuda") for _ in range(3)]
    tensors.pop()
    stats = weft.cuda.memory_stats()
    for name in ("allocated_bytes", "active_bytes"):
        assert stats[f"{name}.all.current"] - before[f"{name}.all.current"] == 24 * MIB
        assert stats[f"{name}.all.allocated"] - before[f"{name}.all.allocated"] == 36 * MIB
        assert stats[f"{name}.all.freed"] == 12 * MIB
    assert stats["allocation.all.current"] - before["allocation.all.current"] == 2
    assert stats["segment.all.current"] - before["segment.all.current"] == 3
    assert stats["reserved_bytes.all.current"] == weft.cuda.memory_reserved()
    assert list(stats) == sorted(stats) and weft.accelerator.memory_stats() == stats
    assert "Allocated memory" in weft.cuda.memory_summary()


def test_free_memory():
    free, total = weft.cuda.mem_get_info()
    assert 0 < free <= total == weft.cuda.get_device_properties().total_memory
    assert weft.accelerator.get_memory_info()[1] == total


def test_too_large_a_tensor():
    failures = weft.cuda.memory_stats().get("num_ooms", 0)
    with pytest.raises(
        weft.cuda.OutOfMemoryError, match="^CUDA out of memory. Tried to allocate 65536.00 GiB."
    ):
        weft.empty(1 << 46, dtype=weft.uint8, device="cuda")
    assert weft.OutOfMemoryError is weft.cuda.OutOfMemoryError
    assert weft.cuda.memory_stats()["num_ooms"] == failures + 1
    assert weft.ones(3, device="cuda").sum().item() == 3


def test_old_names_warn():
    with pytest.warns(FutureWarning, match="has been renamed to `torch.cuda.memory_reserved`"):
        assert weft.cuda.memory_cached() == weft.cuda.memory_reserved()


def test_pinned_memory():
    x = weft.arange(12.0).reshape(3, 4).t()
    pinned = x.pin_memory()
    assert not x.is_pinned() and pinned.is_pinned() and pinned[1:].is_pinned()
    assert pinned.stride() == x.stride() and pinned.tolist() == x.tolist()
    assert pinned.pin_memory() is pinned
    there = pinned.to("cuda", non_blocking=True)
    pinned.zero_()
    assert there.cpu().tolist() == x.tolist() and not there.is_pinned()
    assert x.untyped_storage().pin_memory().is_pinned()
    with pytest.raises(RuntimeError, match="cannot pin 'cuda:0' only dense CPU memory can be pinned"):
        there.pin_memory()
