"""The caching allocator of a GPU over a runtime with little memory."""

from random import Random

import pytest

import weft
from weft.devices._gpu.memory import SMALLEST, Pool, SharedBin, rounded

MEBI = 1 << 20


class Mark:
    """A point in the work of these streams, which is done when the test says so."""

    def __init__(self, streams, apart):
        self.streams, self.apart, self.done = streams, apart, False

    def is_done(self):
        return self.done


class Runtime:
    """Gives out numbers for addresses as long as there is memory."""

    total_memory = 60 * MEBI
    is_recording = False

    def __init__(self):
        self.blocks = {}
        self.next = 4096

        self.stream, self.given = 0, []

    def marks(self, streams, apart):
        self.given.append(Mark(streams, apart))
        return [self.given[-1]]

    def free_memory(self):
        return self.total_memory - sum(self.blocks.values())

    def allocate(self, nbytes):
        if nbytes > self.free_memory():
            raise MemoryError
        self.next += nbytes
        self.blocks[self.next] = nbytes
        return self.next

    def synchronize(self):
        pass

    def release(self, address):
        del self.blocks[address]


@pytest.fixture
def runtime():
    return Runtime()


@pytest.fixture
def pool(runtime):
    return Pool(runtime, "cuda:0", lambda: runtime.stream, runtime.marks)


def take(pool, nbytes):
    bin = pool.program.bin(nbytes)
    return bin, pool.take(bin, nbytes)


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [(0, SMALLEST), (1, 512), (513, 1024), (MEBI, MEBI), (MEBI + 1, 2 * MEBI), (5 * MEBI, 6 * MEBI)],
)
def test_sizes_of_blocks(nbytes, size):
    assert rounded(nbytes) == size


def test_a_freed_block_is_given_to_the_next_tensor_of_its_size(pool, runtime):
    bin, address = take(pool, 1000)
    bin.append(address)
    assert take(pool, 1024) == (bin, address)
    assert take(pool, 1024)[1] == address + 1024
    assert list(runtime.blocks.values()) == [2 * MEBI]


def test_small_tensors_share_segments_and_large_ones_have_others(pool, runtime):
    for nbytes in (100, MEBI, 3 * MEBI, 9 * MEBI, 10 * MEBI, 13 * MEBI):
        take(pool, nbytes)
    assert list(runtime.blocks.values()) == [2 * MEBI, 20 * MEBI, 10 * MEBI, 14 * MEBI]


def test_statistics(pool):
    bin, address = take(pool, 1000)
    take(pool, 500)
    assert (pool.allocated, pool.reserved, pool.active, pool.segments) == (1536, 2 * MEBI, 2, 1)
    bin.append(address)
    assert (pool.allocated, pool.reserved, pool.active) == (512, 2 * MEBI, 1)
    assert (pool.most_allocated, pool.most_reserved) == (1536, 2 * MEBI)
    pool.release_free()
    assert pool.reserved == 2 * MEBI  # the other tensor lies there


def test_free_neighbours_are_merged_and_larger_blocks_are_cut(pool, runtime):
    taken = [take(pool, 2 * MEBI) for _ in range(10)]
    assert [address - taken[0][1] for _, address in taken] == [2 * MEBI * k for k in range(10)]
    for bin, address in taken[2:5]:
        bin.append(address)
    assert take(pool, 6 * MEBI)[1] == taken[2][1]
    for bin, address in (*taken[:2], *taken[5:]):
        bin.append(address)
    assert take(pool, 10 * MEBI)[1] == taken[5][1]
    assert take(pool, 4 * MEBI)[1] == taken[0][1]
    assert list(runtime.blocks.values()) == [20 * MEBI]


def test_blocks_of_two_segments_are_not_merged(pool, runtime):
    (first, a), (second, b) = take(pool, 16 * MEBI), take(pool, 16 * MEBI)
    assert b == a + 16 * MEBI  # as a driver may give them
    first.append(a), second.append(b)
    take(pool, 20 * MEBI)
    assert list(runtime.blocks.values()) == [16 * MEBI, 16 * MEBI, 20 * MEBI]


def test_sizes_that_change_with_each_call_do_not_pile_up(pool):
    random = Random(0)
    for _ in range(500):
        taken = [take(pool, random.randint(1, 1 << 16)) for _ in range(8)]
        for bin, address in taken:
            bin.append(address)
    assert pool.most_reserved == 2 * MEBI and pool.most_allocated > MEBI // 4


def test_free_blocks_of_other_sizes_make_room(pool, runtime):
    bin, address = take(pool, 36 * MEBI)
    bin.append(address)
    take(pool, 50 * MEBI)
    assert list(runtime.blocks.values()) == [50 * MEBI]
    assert pool.reserved == pool.allocated == 50 * MEBI and pool.retries == 1


def test_the_driver_is_asked_for_less_before_memory_is_out(pool, runtime):
    take(pool, 54 * MEBI)
    take(pool, 3 * MEBI)
    assert list(runtime.blocks.values()) == [54 * MEBI, 4 * MEBI]


def test_out_of_memory(pool):
    take(pool, 54 * MEBI)
    with pytest.raises(
        weft.OutOfMemoryError, match=r"Tried to allocate 8\.00 MiB.* 6\.00 MiB is free.* hold 54\.00 MiB"
    ):
        take(pool, 8 * MEBI)
    assert pool.allocated == pool.reserved == 54 * MEBI and pool.failures == 1
    take(pool, 6 * MEBI)


def test_the_limit_of_a_process(pool):
    pool.fraction = 0.5
    bin, address = take(pool, 16 * MEBI)
    with pytest.raises(weft.OutOfMemoryError):
        take(pool, 16 * MEBI)
    bin.append(address)
    take(pool, 30 * MEBI)


def test_blocks_in_use_are_not_released(pool, runtime):
    bin, address = take(pool, 1000)
    pool.release_free()
    assert address in runtime.blocks
    bin.append(address)
    pool.release_free()
    assert not runtime.blocks and not pool.reserved and not pool.segments


def test_memory_of_an_arena_is_kept_for_it(pool, runtime):
    arena = pool.arena((3, 0))
    assert pool.arena((3, 0)) is arena
    bin = arena.bin(1000)
    address = pool.take(bin, 1000)
    bin.append(address)
    assert take(pool, 1000)[1] != address
    pool.leave(arena)
    pool.release_free()
    assert address in runtime.blocks and pool.take(bin, 1000) == address
    bin.append(address)
    pool.leave(arena)
    pool.release_free()
    assert address not in runtime.blocks and arena not in pool.arenas


def test_each_stream_has_blocks_of_its_own(pool, runtime):
    bin, address = take(pool, 1000)
    bin.append(address)
    runtime.stream = 5
    other, elsewhere = take(pool, 1000)
    assert elsewhere != address and (bin.stream, other.stream) == (0, 5)
    other.append(elsewhere)
    assert take(pool, 1000) == (other, elsewhere)
    runtime.stream = 0
    assert take(pool, 1000) == (bin, address)
    assert [(heap.stream, heap.is_small, len(heap.segments)) for heap in pool.program.heaps] == [
        *((0, True, 1), (0, False, 0)),
        *((5, True, 1), (5, False, 0)),
    ]


@pytest.mark.parametrize("streams", [{5, 6}, None])
def test_a_block_that_others_use_is_kept_until_they_are_done(pool, runtime, streams):
    bin, address = take(pool, 2 * MEBI)
    shared = SharedBin(bin, streams)
    assert shared.size == bin.size and shared.stream is None
    shared.append(address)
    (mark,) = runtime.given
    assert (mark.streams, mark.apart) == (streams, 0) and pool.awaited() == {address}
    assert (pool.allocated, pool.active) == (0, 0)
    used = {name: counts.stats()["active_bytes"]["current"] for name, counts in pool.kinds().items()}
    assert used == {"all": 2 * MEBI, "small_pool": 0, "large_pool": 2 * MEBI}
    assert take(pool, 2 * MEBI)[1] != address
    mark.done = True
    blocks = [take(pool, 2 * MEBI)[1] for _ in range(9)]  # the rest of the segment, and the block
    assert address in blocks and not pool.awaited()
    assert pool.kinds()["large_pool"].stats()["active_bytes"]["current"] == 20 * MEBI


def test_memory_that_others_use_is_not_given_to_the_driver(pool, runtime):
    bin, address = take(pool, 12 * MEBI)
    SharedBin(bin, {5}).append(address)
    pool.release_free()
    assert list(runtime.blocks.values()) == [12 * MEBI]
    runtime.given[0].done = True
    pool.release_free()
    assert not runtime.blocks
