"""Sharded models on several processes train as PyTorch's do with Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank

MODULE = "fsdp_programs"


@pytest.mark.parametrize("size", [2, 3])
def test_prefetching(size):
    assert_same_on_every_rank(size, MODULE, "prefetching", relative=1e-4, absolute=1e-6)


@pytest.mark.parametrize("size", [2, 4])
def test_with_tensor_parallelism(size):
    assert_same_on_every_rank(size, MODULE, "tensor_parallel_and_sharded", relative=1e-4, absolute=1e-6)


@pytest.mark.parametrize("size", [2, 3])
def test_whole_state_dicts(size):
    assert_same_on_every_rank(size, MODULE, "whole_state_dicts", relative=1e-4, absolute=1e-6)
