"""Sharded models on several processes train as PyTorch's do with Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank, outcomes, programs

MODULE, WRAPPED = "fsdp_programs", "wrapped_programs"


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", sorted({*programs(MODULE)} - {"tensor_parallel_and_sharded"}))
def test_fully_shard(size, name):
    assert_same_on_every_rank(size, MODULE, name, relative=1e-4, absolute=1e-6)


@pytest.mark.parametrize("size", [2, 4])
def test_with_tensor_parallelism(size):
    assert_same_on_every_rank(size, MODULE, "tensor_parallel_and_sharded", relative=1e-4, absolute=1e-6)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", sorted({*programs(WRAPPED)} - {"only_in_weft"}))
def test_fully_sharded_data_parallel(size, name):
    # Numbers of 16 bits are rounded in other places.
    relative = 2e-2 if name.startswith("narrow") else 1e-4
    assert_same_on_every_rank(size, WRAPPED, name, relative=relative, absolute=1e-6)


def test_what_pytorch_does_not_do_on_the_cpu():
    for rank in outcomes("weft", 3, WRAPPED):
        assert rank["only_in_weft"] == [True] * 8
