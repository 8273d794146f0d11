"""Programs of several processes compute what they compute with PyTorch's Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank, programs

MODULE = "rank_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    assert_same_on_every_rank(size, MODULE, name)
