"""The numbers of the caching allocator, errors without memory, and pinned memory."""

import gc
import pickle

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
    assert stats["segment.all.allocated"] - before["segment.all.allocated"] == 3
    nested = weft.cuda.memory_stats_as_nested_dict()
    assert nested["segment"]["all"]["current"] == stats["segment.all.current"]


def test_the_numbers_of_small_and_large_blocks():
    weft.empty(1, device="cuda")
    weft.cuda.reset_peak_memory_stats()
    before = weft.cuda.memory_stats()
    small = [weft.empty(1000, dtype=weft.uint8, device="cuda") for _ in range(3)]
    large = weft.empty(12 * MIB, dtype=weft.uint8, device="cuda")
    small.pop()
    stats = weft.cuda.memory_stats()

    def more(name):
        return stats[name] - before[name]

    assert more("allocation.small_pool.current") == 2 and more("allocation.large_pool.current") == 1
    assert (
        more("allocation.small_pool.peak") == 3 and more("allocated_bytes.small_pool.allocated") == 3 * 1024
    )
    assert more("allocated_bytes.small_pool.current") == 2 * 1024 and more("active.small_pool.freed") == 1
    assert more("allocated_bytes.large_pool.current") == large.nbytes
    for name in ("allocated_bytes", "active", "allocation", "active_bytes", "reserved_bytes", "segment"):
        for which in ("current", "allocated", "freed"):
            parts = [stats[f"{name}.{part}.{which}"] for part in ("small_pool", "large_pool")]
            assert stats[f"{name}.all.{which}"] == sum(parts), (name, which)


def test_the_table():
    x = weft.empty(3 * MIB, dtype=weft.uint8, device="cuda")
    lines = weft.cuda.memory_summary().splitlines()
    assert {len(line) for line in lines} == {77} and "device ID 0" in lines[1]
    row = next(line for line in lines if "Allocated memory" in line)
    assert row.split("|")[2].split() == [str(weft.cuda.memory_allocated() // 1024), "KiB"] and x.is_cuda
    assert sum("from small pool" in line for line in lines) == 6
    assert "from small pool" not in weft.cuda.memory_summary(abbreviated=True)


def test_sizes_that_change_with_each_call():
    weft.cuda.reset_peak_memory_stats()
    before = weft.cuda.memory_reserved()
    for k in range(200):
        x = weft.empty(1000 + 977 * k, device="cuda")
        del x
    assert weft.cuda.max_memory_reserved() - before <= 2 * MIB


def test_a_part_of_the_memory():
    assert weft.cuda.get_per_process_memory_fraction() == 1.0
    total = weft.cuda.get_device_properties().total_memory
    weft.cuda.set_per_process_memory_fraction(0.125)
    try:
        assert weft.cuda.get_per_process_memory_fraction(0) == 0.125
        with pytest.raises(weft.OutOfMemoryError):
            weft.empty(total // 4, dtype=weft.uint8, device="cuda")
    finally:
        weft.cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        weft.cuda.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match="Invalid fraction value: 1.5. Allowed range: 0~1"):
        weft.cuda.set_per_process_memory_fraction(1.5)


def test_a_pool_gives_memory_to_its_own_tensors_only():
    pool, other = weft.cuda.MemPool(), weft.cuda.MemPool()
    assert pool.id != other.id and pool.use_count() == 1 and pool.snapshot() == []
    with weft.cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        x = weft.ones(1000, device="cuda")
        with weft.cuda.use_mem_pool(other):
            y = weft.ones(1000, device="cuda")
        z = x + 1
    outside = weft.ones(1000, device="cuda")
    (segment,) = pool.snapshot()
    inside = range(segment["address"], segment["address"] + segment["total_size"])
    assert segment["segment_pool_id"] == pool.id
    assert [each.data_ptr() in inside for each in (x, y, z, outside)] == [True, False, True, False]
    address = x.data_ptr()
    del x
    assert weft.ones(1000, device="cuda").data_ptr() != address
    with weft.cuda.use_mem_pool(pool):
        assert weft.ones(1000, device="cuda").data_ptr() == address
    weft.cuda.empty_cache()
    assert pool.snapshot() == [segment] or pool.snapshot()[0]["address"] == segment["address"]
    del z, pool
    gc.collect()
    weft.cuda.empty_cache()
    assert segment["address"] not in [each["address"] for each in weft.cuda.memory_snapshot()]
    with pytest.raises(NotImplementedError, match="MemPool"):
        weft.cuda.MemPool(no_split=True)


def allocate_here():
    return weft.empty(5000, dtype=weft.uint8, device="cuda")


def test_snapshots_say_who_allocated(tmp_path):
    weft.cuda.memory._record_memory_history(max_entries=3)
    try:
        x = allocate_here()
        blocks = [each for segment in weft.cuda.memory_snapshot() for each in segment["blocks"]]
        (block,) = [each for each in blocks if each["address"] == x.data_ptr()]
        assert (block["size"], block["state"]) == (5120, "active_allocated")
        frame = block["frames"][0]
        assert (frame["name"], frame["filename"]) == ("allocate_here", __file__)
        address = x.data_ptr()
        del x
        weft.cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    finally:
        weft.cuda.memory._record_memory_history(enabled=None)
    snapshot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    events = snapshot["device_traces"][0]
    assert [each["action"] for each in events[-2:]] == ["alloc", "free_completed"] and len(events) <= 3
    assert {each["addr"] for each in events[-2:]} == {address} and events[-1]["size"] == 5120
    assert sum(each["total_size"] for each in snapshot["segments"]) == weft.cuda.memory_reserved()
    for segment in snapshot["segments"]:
        assert sum(each["size"] for each in segment["blocks"]) == segment["total_size"]
    assert weft.cuda.memory._snapshot()["device_traces"][0] == []
    with pytest.raises(ValueError, match="enabled"):
        weft.cuda.memory._record_memory_history("some")


def test_memory_for_other_libraries():
    before = weft.cuda.memory_allocated()
    address = weft.cuda.caching_allocator_alloc(2000)
    assert weft.cuda.memory_allocated() == before + 2048
    weft.cuda.caching_allocator_delete(address)
    assert weft.cuda.memory_allocated() == before
    with pytest.raises(ValueError, match="did not give"):
        weft.cuda.caching_allocator_delete(address)
    assert weft.cuda.get_allocator_backend() == "native"


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


def test_numbers_of_pinned_memory():
    weft.cuda.init()
    weft.cuda.reset_accumulated_host_memory_stats()
    before = weft.cuda.host_memory_stats()
    x = weft.ones(100).pin_memory()
    weft.cuda.reset_peak_host_memory_stats()
    stats = weft.cuda.host_memory_stats()
    assert stats["allocated_bytes.current"] - before["allocated_bytes.current"] == 400
    assert stats["allocations.allocated"] - before["allocations.allocated"] == 1
    del x
    stats = weft.cuda.host_memory_stats()
    assert stats["num_host_free"] == 1 and stats["allocations.current"] == before["allocations.current"]
    assert stats["allocations.peak"] == before["allocations.current"] + 1


def test_pinned_memory():
    x = weft.arange(12.0).reshape(3, 4).t()
    pinned = x.pin_memory()
    assert not x.is_pinned() and pinned.is_pinned() and pinned[1:].is_pinned()
    assert pinned.stride() == x.stride() and pinned.tolist() == x.tolist()
    assert pinned.pin_memory() is pinned
    there = pinned.to("cuda", non_blocking=True)
    weft.cuda.synchronize()  # the host has not waited
    pinned.zero_()
    assert there.cpu().tolist() == x.tolist() and not there.is_pinned()
    assert x.untyped_storage().pin_memory().is_pinned()
    with pytest.raises(RuntimeError, match="cannot pin 'cuda:0' only dense CPU memory can be pinned"):
        there.pin_memory()
