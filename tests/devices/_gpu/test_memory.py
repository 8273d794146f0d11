"""The caching allocator of a GPU over a runtime with little memory."""

import pytest

import weft
from weft.devices._gpu.memory import SMALLEST, Pool, rounded

MEBI = 1 << 20


class Runtime:
    """Gives out numbers for addresses as long as there is memory."""

    total_memory = 8 * MEBI

    def __init__(self):
        self.blocks = {}
        self.next = 4096

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
    return Pool(runtime, "cuda:0")


def take(pool, nbytes):
    bin = pool.bin(nbytes)
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
    assert take(pool, 1024)[1] != address
    assert len(runtime.blocks) == 2


def test_statistics(pool):
    bin, address = take(pool, 1000)
    take(pool, 500)
    assert (pool.allocated, pool.reserved, pool.active) == (1536, 1536, 2)
    bin.append(address)
    assert (pool.allocated, pool.reserved, pool.active) == (512, 1536, 1)
    assert (pool.most_allocated, pool.most_reserved) == (1536, 1536)
    pool.release_free()
    assert (pool.reserved, pool.most_reserved) == (512, 1536)


def test_free_blocks_of_other_sizes_make_room(pool, runtime):
    bin, address = take(pool, 6 * MEBI)
    bin.append(address)
    take(pool, 4 * MEBI)
    assert list(runtime.blocks.values()) == [4 * MEBI]
    assert pool.reserved == pool.allocated == 4 * MEBI


def test_out_of_memory(pool):
    take(pool, 6 * MEBI)
    with pytest.raises(
        weft.OutOfMemoryError, match=r"Tried to allocate 4\.00 MiB.* 2\.00 MiB is free.* hold 6\.00 MiB"
    ):
        take(pool, 4 * MEBI)
    assert pool.allocated == pool.reserved == 6 * MEBI
    take(pool, 2 * MEBI)


def test_blocks_in_use_are_not_released(pool, runtime):
    _, address = take(pool, 1000)
    pool.release_free()
    assert address in runtime.blocks
