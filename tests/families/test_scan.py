"""Running results: strides, states of several parts, threads and devices."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from oracle import to_torch, to_weft
from twins import tensors

import weft
from weft.families.monoid_op import Types
from weft.families.scan import Scan


def mean_and_count(dtype):
    return Scan(
        "mean",
        lambda own, wanted: Types(dtype, (dtype, own)),
        lambda compute: (0, 0),
        lambda x: (x, x * 0 + 1),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda state: (state[0] / state[1], state[1]),
    )


@settings(max_examples=60, deadline=None)
@given(tensors(dtypes=("float32", "float16", "int64"), min_dims=1))
def test_a_state_of_two_parts_and_two_results(tensor):
    for dim in range(tensor.dim()):
        mean, count = mean_and_count(weft.float64)(to_weft(tensor), dim)
        counts = torch.ones(tensor.shape, dtype=torch.float64).cumsum(dim)
        torch.testing.assert_close(to_torch(mean), tensor.double().cumsum(dim) / counts)
        torch.testing.assert_close(to_torch(count), counts.to(tensor.dtype))


def test_dims_count_from_the_end_and_are_in_range():
    x = weft.arange(6.0).reshape(2, 3)
    scan = mean_and_count(weft.float32)
    assert scan(x, -2)[0].equal(scan(x, 0)[0])
    for dim in (2, -3):
        with pytest.raises(IndexError, match=f"got {dim}"):
            scan(x, dim)


@pytest.mark.parametrize("dim", (0, 1, 2))
def test_rows_are_shared_among_threads(dim):
    values = np.random.default_rng(0).integers(-9, 9, (40, 150, 200))
    got = weft.cumsum(weft.from_numpy(values), dim)
    np.testing.assert_array_equal(got.numpy(), values.cumsum(dim))


def test_a_pending_conjugation_is_carried_out():
    values = weft.tensor([1 + 2j, 3 - 1j]).conj()
    assert weft.cumsum(values, 0).tolist() == [1 - 2j, 4 - 1j]


def test_without_memory_there_is_a_shape():
    found = weft.cummax(weft.empty(3, 4, device="meta"), 1)
    assert found.values.is_meta and found.indices.shape == (3, 4) and found.indices.dtype is weft.int64


@pytest.mark.parametrize("name", ("cumsum", "cumprod", "cummax", "logcumsumexp"))
@pytest.mark.parametrize("dtype", ("float32", "complex64", "bfloat16"))
@pytest.mark.parametrize("rows", (1, 3, 4, 39))
def test_rows_side_by_side_have_the_bits_of_one_row(name, dtype, rows):
    if name == "cummax" and dtype == "complex64":
        return
    torch.manual_seed(rows)
    x = to_weft(torch.randn(rows, 2, 9, dtype=getattr(torch, dtype)))
    for tensor, dim in (
        (x, 2),
        (x.transpose(0, 2).contiguous(), 0),
        (x[::2, :, ::2], 2),
        (x.expand(2, rows, 2, 9), 3),
    ):
        whole = getattr(weft, name)(tensor, dim)
        whole = whole.values if name == "cummax" else whole
        flat, found = (each.movedim(dim, -1).reshape(-1, tensor.shape[dim]) for each in (tensor, whole))
        for k, row in enumerate(flat):
            alone = getattr(weft, name)(row, 0)
            assert (alone.values if name == "cummax" else alone).tolist() == found[k].tolist()
