"""Scales and zero points of ranges: PyTorch's, to the bit."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.ops.elementwise.qparams import choose_qparams

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")

numbers = (
    st.floats(-(2.0**99), 2.0**99, width=32)
    | st.floats(-(2.0**-10), 2.0**-10, width=32)
    | st.floats(-5, 5, width=32)
)


def of_fused(ends, low, high, symmetric):
    """The choice of PyTorch's fused observer."""
    on, scale, point = torch.tensor([1]), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    state = torch.tensor([float("inf")]), torch.tensor([-float("inf")]), scale, point
    torch.fused_moving_avg_obs_fake_quant(ends, on, on, *state, 0.5, low, high, -1, False, symmetric)
    return scale.item(), point.item()


@settings(max_examples=150, deadline=None)
@given(numbers, numbers, st.booleans())
@example(0.0, 0.0, False)
@example(-1e-9, 1e-9, True)
@example(0.0, 1e-9, False)
@example(-1e-9, 0.0, False)
@example(-1e-44, 1e-40, True)
@example(-1e-4, 3e-4, False)
@example(-10.0, 10.0, False)
@example(-7.0, 7.0, True)
def test_like_pytorch(one, other, halved):
    ends = torch.tensor(sorted((one, other)), dtype=torch.float32)
    least, most = ends.tolist()
    assert choose_qparams(least, most, 0, 255, reduce_range=halved) == torch._choose_qparams_per_tensor(
        ends, halved
    )
    dynamic = torch.quantize_per_tensor_dynamic(ends, torch.qint8, halved)
    found = choose_qparams(least, most, -128, 127, reduce_range=halved)
    assert found == (dynamic.q_scale(), dynamic.q_zero_point())
    for symmetric, bounds in product((False, True), ((-128, 127), (0, 255), (0, 127))):
        scale, point = choose_qparams(least, most, *bounds, symmetric, in_float32=True)
        assert (np.float32(scale), point) == of_fused(ends, *bounds, symmetric)


def test_ranges_without_an_end():
    infinity = float("inf")
    for least, most in ((-infinity, 1.0), (0.0, infinity), (-infinity, infinity)):
        wanted = torch._choose_qparams_per_tensor(torch.tensor([least, most]), False)
        assert choose_qparams(least, most, 0, 255) == wanted
    for least, most in ((float("nan"), 1.0), (1.0, 0.0)):
        with pytest.raises(RuntimeError, match="min should be less than or equal to max"):
            choose_qparams(least, most, 0, 255)
