"""ZeroRedundancyOptimizer, Join and DistributedSampler do on several processes what they do with PyTorch's Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank, programs

MODULE = "optimizer_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    assert_same_on_every_rank(size, MODULE, name, relative=1e-4, absolute=1e-6)
