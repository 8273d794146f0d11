"""Communication hooks and options of DistributedDataParallel, and averages of models, compute what they compute with PyTorch's Gloo."""

import pytest
from several_ranks import assert_same_on_every_rank, programs

MODULE = "hook_programs"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    # Products and gradients of 16 and 8 bits are rounded in other places. Adam divides small gradients by small numbers.
    relative, absolute = {
        "mixed_precision": (2e-2, 1e-3),
        "hooks_by_type": (1e-4, 1e-5),
        "quantized": (1e-4, 1e-5),
        "fused_optimizers": (1e-3, 1e-4),
        "zero_steps_of_optimizers": (1e-3, 1e-4),
        "zero_steps": (1e-3, 1e-4),
        "zero_steps_within_the_backward_pass": (1e-3, 1e-4),
    }.get(name, (1e-4, 1e-6))
    assert_same_on_every_rank(size, MODULE, name, relative=relative, absolute=absolute)
