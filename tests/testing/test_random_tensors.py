"""`make_tensor` draws PyTorch's numbers."""

import pytest
import torch
from expressions import check, lines

import weft

EXPRESSIONS = """
torch.testing.make_tensor(2, 3, dtype=torch.float32, device='cpu')
torch.testing.make_tensor((2, 3), dtype=torch.float64, device='cpu', low=-0.1, high=2)
torch.testing.make_tensor(2, 3, dtype=torch.int64, device='cpu')
torch.testing.make_tensor(2, 3, dtype=torch.uint8, device='cpu')
torch.testing.make_tensor(4, dtype=torch.bool, device='cpu')
torch.testing.make_tensor(4, dtype=torch.complex64, device='cpu')
torch.testing.make_tensor(4, dtype=torch.bfloat16, device='cpu')
torch.testing.make_tensor(4, dtype=torch.int8, device='cpu', low=-3, high=4)
torch.testing.make_tensor(4, dtype=torch.int8, device='cpu', low=0, high=2, exclude_zero=True)
torch.testing.make_tensor(4, dtype=torch.float32, device='cpu', requires_grad=True)
torch.testing.make_tensor(4, 2, dtype=torch.float32, device='cpu', noncontiguous=True)
torch.testing.make_tensor(1, 2, 3, 3, dtype=torch.float32, device='cpu', memory_format=torch.channels_last)
torch.testing.make_tensor((), dtype=torch.float32, device='cpu')
torch.testing.make_tensor(4, dtype=torch.uint8, device='cpu', low=0.5, high=2)
torch.testing.make_tensor(4, dtype=torch.float32, device='cpu', low=3, high=2)  # raises
torch.testing.make_tensor(4, dtype=torch.int8, device='cpu', low=127, high=128)
torch.testing.make_tensor(4, dtype=torch.uint8, device='cpu', low=-3, high=-2)  # raises
torch.testing.make_tensor(4, dtype=torch.float16, device='cpu', low=10**5, high=10**6)  # raises
torch.testing.make_tensor(4, dtype=torch.float64, device='cpu', low=-10**310, high=-10**309)  # raises
torch.testing.make_tensor(4, dtype=torch.float32, device='cpu', low=float('nan'))  # raises
torch.testing.make_tensor(4, dtype=torch.int64, device='cpu', requires_grad=True)  # raises
torch.testing.assert_allclose(torch.ones(2), [1.0, 1.00001])
torch.testing.assert_allclose(torch.ones(2), torch.ones(2, dtype=torch.float64))
torch.testing.assert_allclose(torch.ones(2), torch.ones(2) * 1.1)  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    for lib in (weft, torch):
        lib.manual_seed(0)
    check(expression)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_the_whole_range_of_a_dtype(dtype):
    info = weft.finfo(getattr(weft, dtype).to_real())
    made = weft.testing.make_tensor(
        100, dtype=getattr(weft, dtype), device="cpu", low=info.min, high=info.max
    )
    assert made.isfinite().all()
    assert made.abs().max() > info.max / 4
