"""Products of narrow floats, by the processor's instruction where it has one: the right numbers from any strides and sizes, however they are shared."""

import itertools

import numpy as np
import pytest
import torch

import weft
import weft.nn.functional as F
from weft.core.dtype import when_plans_expire
from weft.engine import gemm, narrow_gemm


def forget_plans():
    for forget in when_plans_expire:
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


def rows_and_columns(matrix):
    """Matrices of one row or column with every kind of strides, and equal values."""
    yield matrix
    yield matrix.mT.contiguous().mT
    yield weft.stack((matrix, matrix), -1)[..., 1]
    yield weft._neg_view(-matrix)
    rows, columns = matrix.shape
    yield matrix.as_strided((rows, columns), (1 if rows == 1 else columns, 1 if columns > 1 else 3))
    wide = weft.cat((matrix, matrix), 0).reshape(2, -1).mT.contiguous()
    yield (
        wide[:, 0].reshape(rows, columns)
        if 1 not in matrix.shape
        else wide[:, :1].as_strided((rows, columns), (7 if rows == 1 else 2, 2 if columns > 1 else 7))
    )


# Terms: less than a line, whole lines, one more, and more than fit a panel.
@pytest.mark.parametrize("terms", [1, 2, 31, 64, 65, 5001])
@pytest.mark.parametrize("others", [1, 7, 8, 40])
@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float16], ids=str)
def test_vectors(dtype, terms, others):
    random = np.random.default_rng(0)
    integers = random.integers(-2, 3, (others, terms)), random.integers(-2, 3, (terms, 1))
    matrix, vector = (weft.from_numpy(x.astype(np.float32)).to(dtype) for x in integers)
    wanted = weft.from_numpy((integers[0] @ integers[1]).astype(np.float32)).to(dtype)
    for a, v in itertools.product(rows_and_columns(matrix), rows_and_columns(vector)):
        assert weft.equal(a, matrix) and weft.equal(v, vector)
        assert weft.equal(a @ v, wanted)
        assert weft.equal(a @ v[:, 0], wanted[:, 0])
        assert weft.equal(v.mT @ a.mT, wanted.mT)
        assert weft.equal(v[:, 0] @ a.mT, wanted[:, 0])
        assert weft.equal(F.linear(v.mT, a, wanted[:, 0]), (2 * wanted).mT)
        stacked = weft.stack((a, a))
        assert weft.equal(stacked @ v, weft.stack((wanted, wanted)))
        assert weft.equal(stacked @ v[:, 0], weft.stack((wanted, wanted))[..., 0])
        assert weft.equal(v.mT @ stacked.mT, weft.stack((wanted, wanted)).mT)
        assert weft.equal(stacked[:, :1] @ v, weft.stack((wanted, wanted))[:, :1])


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


def test_a_stack_of_single_rows_with_gaps_times_a_vector():
    rows = np.arange(3 * 66, dtype=np.float32).reshape(3, 1, 66) % 7
    vector = np.arange(33, dtype=np.float32) % 5
    found = weft.from_numpy(rows).bfloat16()[..., ::2] @ weft.from_numpy(vector).bfloat16()
    expected = torch.tensor(rows[..., ::2] @ vector).bfloat16().float()
    assert found.float().tolist() == expected.tolist()
