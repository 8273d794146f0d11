"""Reductions: PyTorch's bits where its order is known, whatever the threads and the strides."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.engine.kernel import PARALLEL_BYTES


@pytest.fixture(autouse=True)
def one_oracle_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def both(array):
    return weft.from_numpy(array), torch.from_numpy(array)


def same_bits(ours, theirs):
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sum_and_mean_of_a_row_have_torchs_bits(dtype):
    rng = np.random.default_rng(0)
    for size in [*range(1, 150), 1000, 4097, 65537, 300003]:
        ours, theirs = both(rng.standard_normal(size).astype(dtype))
        same_bits(ours.sum(), theirs.sum())
        same_bits(ours.mean(), theirs.mean())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(5, 7), (100, 33), (1000, 64), (3, 2000), (70, 300), (4096, 40)])
def test_sum_over_either_dim_has_torchs_bits(dtype, shape):
    ours, theirs = both(np.random.default_rng(1).standard_normal(shape).astype(dtype))
    for dim in (0, 1, (0, 1)):
        same_bits(ours.sum(dim), theirs.sum(dim))


def test_repeated_columns_are_summed_as_one_column_is():
    ours, theirs = both(np.random.default_rng(0).normal(size=50_001).astype(np.float32))
    want = ours.sum().expand(8)
    same_bits(ours[:, None].expand(50_001, 8).sum(0), want)
    same_bits(ours[:, None].expand(50_001, 8).sum(0), theirs[:, None].expand(50_001, 8).sum(0))


def test_threads_do_not_change_a_bit():
    size = 3 * PARALLEL_BYTES // 4 + 12345
    rng = np.random.default_rng(2)
    row = weft.from_numpy(rng.standard_normal(size).astype(np.float32))
    square = weft.from_numpy(rng.standard_normal((1003, 997)).astype(np.float32))
    before = weft.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 5):
            weft.set_num_threads(threads)
            found = [
                row.sum(), row.max(), row.argmin(), row.var(), square.sum(0), square.sum(1), square.argmax(0),
            ]  # fmt: skip
            results.append([t.tolist() for t in found])
    finally:
        weft.set_num_threads(before)
    assert all(result == results[0] for result in results)


REDUCTIONS = ["sum", "amax", "amin", "any", "all", "argmax", "argmin", "count_nonzero", "var", "mean", "prod"]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_strides_and_dims_agree_with_torch(data):
    name = data.draw(st.sampled_from(REDUCTIONS))
    kinds = [np.float32, np.float64, np.int32, np.uint8, np.bool_, np.complex64]
    if name in ("var", "mean"):
        kinds = kinds[:2]
    if name in ("amax", "amin", "argmax", "argmin"):
        kinds = kinds[:4]
    shape = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    array = (
        rng.integers(-3, 4, shape) if data.draw(st.booleans()) else rng.standard_normal(shape) * 3
    ).astype(data.draw(st.sampled_from(kinds)))
    array = array.transpose(data.draw(st.permutations(range(len(shape)))))
    if data.draw(st.booleans()):
        array = array[::2]
    ours, theirs = both(array)
    one = name in ("prod", "argmax", "argmin")
    dims = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    dim = dims[0] if one else tuple(dims)
    options = {} if name == "count_nonzero" else {"keepdim": data.draw(st.booleans())}
    if name == "var":
        options["correction"] = 0
    got, want = getattr(ours, name)(dim, **options), getattr(theirs, name)(dim, **options)
    assert str(got.dtype) == str(want.dtype) and tuple(got.shape) == tuple(want.shape)
    if name in ("argmax", "argmin"):  # several elements may be the extreme one; we promise the first
        np.testing.assert_array_equal(
            got.numpy(), getattr(np, name)(array, axis=dim, keepdims=options["keepdim"])
        )
    else:
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=1e-5)


def rows_of(length, dtype, step):
    """40 rows, whose elements or rows are `step` apart in memory, with ties, infinities, NaNs and zeros of both signs."""
    rng = np.random.default_rng(length)
    array = (rng.standard_normal((40 * step, length * step)) * 4).round(1).astype(dtype)
    if array.dtype.kind == "f":
        special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], array.shape)
        array = np.where(rng.random(array.shape) < 0.02, special, array).astype(dtype)
    return weft.from_numpy(array)[::step, ::step]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("name, dtype", [("sum", "f"), ("mean", "d"), ("prod", "F"), ("max", "f"), ("argmin", "b"), ("any", "?")])  # fmt: skip
def test_short_rows_side_by_side_have_the_bits_of_one_row(name, dtype, step):
    for length in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 71, 128, 255, 256, 511, 512):
        x = rows_of(length, dtype, step)
        together, *alone = (getattr(rows, name)(1) for rows in (x, *x.split(1)))
        found = zip(together, *alone) if name == "max" else [(together, *alone)]
        for whole, *parts in found:
            want = np.concatenate([each.numpy() for each in parts])
            assert bits(whole.numpy()) == bits(want), length


def bits(array):
    """The bytes of an array; all NaNs count as one.

    The sum of two NaNs is the first of them, and LLVM may exchange the operands of an addition.
    """
    if array.dtype.kind in "fc":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.tobytes()


def test_nan_wins():
    ours = weft.tensor([1.0, float("nan"), 3.0, float("nan")] * 20)
    assert ours.argmax().item() == ours.argmin().item() == 1
    assert ours.amax().isnan().item() and ours.amin().isnan().item()
    assert ours.max(0).indices.item() == 1


@pytest.mark.parametrize("dtype", ["f", "d", "e", "b", "B", "q"])
@pytest.mark.parametrize("length", [5, 300])
def test_extreme_elements_are_the_first_ones(dtype, length):
    array = rows_of(length, dtype, 1).numpy().copy()
    array[3] = np.inf if array.dtype.kind == "f" else np.iinfo(dtype).max
    array[4] = -np.inf if array.dtype.kind == "f" else np.iinfo(dtype).min
    for one in (array, array.T.copy()):
        x = weft.from_numpy(one)
        for dim in (0, 1):
            for name in ("max", "min"):
                values, indices = getattr(x, name)(dim)
                want = getattr(np, "arg" + name)(one, dim)
                np.testing.assert_array_equal(indices.numpy(), want)
                np.testing.assert_array_equal(values.numpy(), getattr(np, name)(one, dim))
                np.testing.assert_array_equal(getattr(x, "arg" + name)(dim).numpy(), want)
                np.testing.assert_array_equal(
                    getattr(x.aminmax(dim=dim), name).numpy(), getattr(np, name)(one, dim)
                )
        assert x.argmax().item() == one.argmax() and x.argmin().item() == one.argmin()
        np.testing.assert_array_equal([each.item() for each in x.aminmax()], [one.min(), one.max()])


def test_empty_reductions():
    empty = weft.zeros(0, 3)
    assert empty.sum().item() == 0 and empty.prod().item() == 1
    assert empty.sum(0).tolist() == [0, 0, 0] and empty.sum(1).shape == (0,)
    assert not empty.any().item() and empty.all().item()
    with pytest.raises(RuntimeError, match="numel"):
        empty.max()
    with pytest.raises(IndexError, match="non-zero size"):
        empty.max(0)


def test_a_hundred_million_ones_are_counted():
    """Cascaded sums keep float32 accurate where one running sum would stop at 2**24."""
    assert weft.ones(1).expand(100_000_000).sum().item() == 100_000_000


@pytest.mark.parametrize("dims", [(0, 0), (0, -2), (1, -1), (0, 1, 1)])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "any", "logsumexp", "var", "count_nonzero"])
def test_a_dim_named_twice_is_refused(name, dims):
    for lib in (torch, weft):
        with pytest.raises(RuntimeError, match="appears multiple times"):
            getattr(lib.ones(2, 3), name)(dims)


@pytest.mark.parametrize("size", [2, 3, 8, 33])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("transposed", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_inputs_with_different_strides(size, dim, transposed):
    """A reduction of two inputs, of which one may run along its memory and the other across."""
    x, y = (weft.arange(size * size, dtype=weft.float64).view(size, size) % k for k in (7, 5))
    a, b = (each.t() if flag else each for each, flag in zip((x, y), transposed, strict=True))
    assert weft.linalg.vecdot(a, b, dim=dim).tolist() == (a * b).contiguous().sum(dim).tolist()
