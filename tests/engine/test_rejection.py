"""Poisson and binomial numbers against PyTorch's: the same bits, and the same state afterwards."""

import numpy as np
import pytest
import torch

from weft.core import dtype as dtypes
from weft.core.generator import Generator
from weft.engine import rejection


def assert_same(generator, values, expected):
    np.testing.assert_array_equal(values, expected.double().numpy())
    np.testing.assert_array_equal(generator.state_bytes(), torch.get_rng_state().numpy())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("largest", [1.0, 20.0, 1e3, 1e9])
def test_poisson(largest, seed):
    torch.manual_seed(seed)
    rates = torch.cat([torch.tensor([0.0, 10.0]), torch.rand(20000) * largest]).double()
    generator = Generator().manual_seed(seed)
    torch.manual_seed(seed)
    expected = torch.poisson(rates)
    values = np.empty(rates.numel())
    rejection.poisson(generator, values.ctypes.data, rates.data_ptr(), values.size)
    assert_same(generator, values, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("largest", [5, 100, 10000])
def test_binomial(largest, dtype):
    torch.manual_seed(largest)
    special = torch.tensor([[0, 0.5], [3, 0], [3, 1], [3, float("nan")], [20, 0.5], [20, 0.3]])
    random = torch.stack([torch.randint(0, largest, (20000,)), torch.rand(20000)], 1)
    counts, p = torch.cat([special, random]).to(getattr(torch, dtype)).unbind(1)
    generator = Generator().manual_seed(largest)
    torch.manual_seed(largest)
    expected = torch.binomial(counts, p)
    counts, p = (x.double().contiguous() for x in (counts, p))
    values = np.empty(counts.numel())
    rejection.binomial(
        generator, values.ctypes.data, counts.data_ptr(), p.data_ptr(), values.size, dtypes.DTYPES[dtype]
    )
    assert_same(generator, values, expected)


def test_nothing_to_draw():
    generator = Generator().manual_seed(1)
    before = generator.state_bytes()
    rejection.poisson(generator, 0, 0, 0)
    rejection.binomial(generator, 0, 0, 0, 0, dtypes.float32)
    np.testing.assert_array_equal(generator.state_bytes(), before)
