"""Communication hooks of DistributedDataParallel and averages of models compute what they compute with PyTorch's Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank, programs

MODULE = "hook_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    # Gradients of 16 and 8 bits are rounded in other places: the parameters differ by the learning rate times that.
    absolute = 1e-5 if name in ("hooks_by_type", "quantized") else 1e-6
    assert_same_on_every_rank(size, MODULE, name, relative=1e-4, absolute=absolute)
