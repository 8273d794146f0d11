"""Sums and softmax of the entries of coordinate tensors, compared with PyTorch's."""

import math

import pytest
import torch
from oracle import to_torch, to_weft
from sparse_entries import entries, same

from weft.layouts.sparse import segments

CASES = (
    ((4, 5), (), 12), ((4, 5), (2, 3), 12), ((3, 2, 4), (), 40), ((7,), (2,), 5), ((5, 5), (), 0), ((1000, 70000), (), 50),
)  # fmt: skip


def coalesced(sizes, dense, nnz, dtype):
    return torch.sparse_coo_tensor(*entries(sizes, dense, nnz, dtype), (*sizes, *dense)).coalesce()


def close(got, expected):
    torch.testing.assert_close(to_torch(got), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES)
def test_softmax(sizes, dense, nnz, dtype, name):
    for dim in range(len(sizes) + len(dense)):
        tensor = coalesced(sizes, dense, nnz, dtype).requires_grad_()
        indices, values = to_weft(tensor.detach()._indices()), to_weft(tensor.detach()._values())
        expected = getattr(torch.sparse, name)(tensor, dim)
        got = segments.softmax(indices, values, sizes, dim, name == "log_softmax")
        close(got, expected.detach()._values())
        ct = torch.sparse_coo_tensor(
            expected.detach()._indices(),
            torch.randn_like(expected.detach()._values()),
            expected.shape,
            is_coalesced=True,
        )
        if nnz:
            expected.backward(ct)
            back = segments.softmax_backward(
                to_weft(ct._values()), got, indices, sizes, dim, name == "log_softmax"
            )
            close(back, tensor.grad.coalesce()._values())


def test_softmax_of_infinities():
    tensor = torch.sparse_coo_tensor(
        [[0, 0, 1, 1, 2, 2, 3], [0, 1, 0, 1, 0, 1, 0]],
        [-math.inf, -math.inf, math.inf, 1.0, math.nan, 1.0, -math.inf],
        (4, 2),
    ).coalesce()
    expected = torch.sparse.softmax(tensor, 1)._values()
    got = to_torch(segments.softmax(to_weft(tensor._indices()), to_weft(tensor._values()), (4, 2), 1, False))
    torch.testing.assert_close(got, expected, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES)
def test_sums(sizes, dense, nnz, dtype):
    tensor = torch.sparse_coo_tensor(*entries(sizes, dense, nnz, dtype), (*sizes, *dense))
    for dims in ((0,), (1,), (0, 2), (1, 2)):
        if nnz and len(dims) < len(sizes) and dims[-1] < len(sizes):
            expected = torch.sparse.sum(tensor, dims)
            got = segments.summed(to_weft(tensor._indices()), to_weft(tensor._values()), sizes, dims)
            same(got[0], expected._indices())
            close(got[1], expected._values())
