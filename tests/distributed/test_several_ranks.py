"""Programs of several processes compute what they compute with PyTorch's Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank, outcomes, programs

MODULE = "rank_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    assert_same_on_every_rank(size, MODULE, name)


def test_eight_processes():
    """More processes than the processors of most machines that run this test."""
    for rank in outcomes("weft", 8, "many_ranks_programs"):
        for name, errors in rank.items():
            assert all(error < 1e-12 for _, _, error in errors), (name, errors)
