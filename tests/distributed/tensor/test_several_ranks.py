"""DTensors on several processes give what PyTorch's give."""

import pytest
from several_ranks import assert_same_on_every_rank, programs

MODULE = "dtensor_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 4])  # PyTorch 2.13 waits for ever where pieces differ in size
def test_same_on_every_rank(size, name):
    assert_same_on_every_rank(size, MODULE, name, relative=2e-4, absolute=1e-5)
