"""Products of bfloat16 by the processor's instruction: the right numbers from any strides and sizes, however they are shared."""

import itertools

import numpy as np
import pytest
import torch

import weft
import weft.nn.functional as F
from weft.core.dtype import when_default_changes
from weft.engine import gemm, narrow_gemm

pytestmark = pytest.mark.skipif(
    not narrow_gemm.available(), reason="this processor does not multiply bfloat16 (AVX512-BF16)"
)


def forget_plans():
    for forget in when_default_changes:
        forget()


@pytest.fixture(params=[1, 2, 3], autouse=True)
def threads(request, monkeypatch):
    before = weft.get_num_threads()
    weft.set_num_threads(request.param)
    for module in (gemm, narrow_gemm):
        monkeypatch.setattr(module, "SHARED_WORK", 1 << 12)
        monkeypatch.setattr(module, "ALWAYS_SHARED_WORK", 1 << 12)
    forget_plans()  # plans cut the work for the number of threads
    yield request.param
    weft.set_num_threads(before)


def narrow(values, transposed):
    values = values.swapaxes(-1, -2).copy() if transposed else values
    found = weft.from_numpy(values.astype(np.float32)).to(weft.bfloat16)
    return found.mT if transposed else found


def floats(tensor):
    return tensor.float().numpy()


# Whole tiles and panels, left-over rows, columns and terms, and single ones.
SIZES = [(8, 2, 32), (1, 1, 16), (5, 7, 17), (13, 64, 33), (27, 65, 96), (64, 3, 1), (7, 5, 40)]


@pytest.mark.parametrize("sizes", SIZES)
def test_products_of_integers_are_exact(sizes):
    rows, terms, columns = sizes
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (rows, terms)), random.integers(-4, 5, (terms, columns))
    wanted = floats(weft.from_numpy((a @ b).astype(np.float32)).to(weft.bfloat16))
    for left, right in itertools.product((False, True), repeat=2):
        np.testing.assert_array_equal(floats(narrow(a, left) @ narrow(b, right)), wanted)


def test_stacks_vectors_and_overlapping_rows():
    a, b = weft.randn(3, 1, 10, 20).bfloat16(), weft.randn(4, 20, 40).bfloat16()
    pairs = [(a, b), (a[0, 0], b), (a, b[0]), (a[0, 0, 0], b), (a[0, 0], b[0, :, 0])]
    pairs += [
        (a[:, 0, :1].expand(3, 10, 20), b[0]),
        (a[0, 0, :, ::2], b[0, ::2]),
        (a[0, 0].flip(1), b[0, :, 3:19]),
    ]
    for left, right in pairs:
        wanted = torch.from_numpy(floats(left)).bfloat16() @ torch.from_numpy(floats(right)).bfloat16()
        np.testing.assert_allclose(floats(left @ right), wanted.float().numpy(), rtol=2**-7, atol=2**-6)


@pytest.mark.parametrize("terms", [2, 3])
def test_numbers_beyond_a_row_are_not_read(terms):
    """An odd number of terms ends with half a pair, whose other half must not count: infinity times 0 is NaN."""
    whole = weft.full((9, 4), float("inf"), dtype=weft.bfloat16)
    whole[:, :terms] = 1
    result = whole[:, :terms] @ weft.ones(terms, 20, dtype=weft.bfloat16)
    assert bool((result == terms).all())


def test_linear_adds_the_bias_before_it_rounds():
    random = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(*size, generator=random).bfloat16() for size in ((33, 65), (48, 65), (48,))
    )
    wanted = (x.double() @ weight.double().T + bias.double()).bfloat16().float().numpy()
    found = floats(
        F.linear(*(weft.from_numpy(each.float().numpy()).bfloat16() for each in (x, weight, bias)))
    )
    assert (found != wanted).mean() < 0.01  # float32 sums may round to the other neighbour
    np.testing.assert_allclose(found, wanted, rtol=2**-7)


def test_the_bits_do_not_depend_on_the_number_of_threads(threads):
    weft.manual_seed(0)
    a, b = weft.randn(100, 130).bfloat16(), weft.randn(130, 150).bfloat16()
    found = floats(a @ b).tobytes()
    weft.set_num_threads(1)
    forget_plans()
    assert floats(a @ b).tobytes() == found
