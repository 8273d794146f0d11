"""Sums and softmax of sparse tensors, compared with PyTorch's; derivatives are compared with finite differences."""

import pytest
import torch
from oracle import to_torch, to_weft
from sparse_entries import entries

import weft
from weft.layouts.sparse import reductions

pytestmark = pytest.mark.filterwarnings("ignore")
CASES = (((4, 5), (), 12), ((4, 5), (2, 3), 12), ((3, 2, 4), (), 20), ((5, 5), (), 0))


def pair(sizes, dense, nnz, dtype="float64"):
    indices, values = entries(sizes, dense, nnz, dtype)
    return (
        torch.sparse_coo_tensor(indices, values, (*sizes, *dense)),
        weft.sparse_coo_tensor(to_weft(indices), to_weft(values), (*sizes, *dense)),
    )


def same(got, expected):
    assert str(got.layout) == str(expected.layout)
    assert (got.shape, str(got.dtype)) == (expected.shape, str(expected.dtype))
    if expected.layout is torch.sparse_coo:
        assert got.is_coalesced() == expected.is_coalesced()
        assert got._indices().tolist() == expected._indices().tolist()
        got, expected = got._values(), expected._values()
    torch.testing.assert_close(to_torch(got), expected)


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES)
def test_sums(sizes, dense, nnz, dtype):
    theirs, ours = pair(sizes, dense, nnz, dtype)
    for dim in (None, 0, 1, -1, (0, 1), (0, -1), []):
        if dim == []:
            same(weft.sum(ours, []), torch.sum(theirs, []))
        elif dtype == "float64" or dim is None or not dense:
            same(reductions.sparse_sum(ours, dim), torch.sparse.sum(theirs, *([] if dim is None else [dim])))
        if dim not in (None, []):
            for keepdim in (False, True):
                same(weft.sum(ours, dim, keepdim), torch.sum(theirs, dim, keepdim))
            same(ours.sum(dim, dtype=weft.float32), theirs.sum(dim, dtype=torch.float32))
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times"):
        ours.sum((0, 0))


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_sums_of_compressed_tensors(layout):
    theirs, ours = pair((4, 6), (), 12)
    blocksize = ((2, 3),) if layout.startswith("b") else ()
    matrix = getattr(ours, f"to_sparse_{layout}")(*blocksize)
    for dim in (0, 1, (0, 1)):
        result = matrix.sum(dim, True)
        assert result.layout is matrix.layout
        torch.testing.assert_close(to_torch(result.to_dense()), theirs.to_dense().sum(dim, True))
        result = matrix.sum(dim)
        result = result if result.layout is weft.strided else result.to_dense()
        torch.testing.assert_close(to_torch(result), theirs.to_dense().sum(dim))
    torch.testing.assert_close(to_torch(matrix.sum()), theirs.to_dense().sum())


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES)
def test_softmax(sizes, dense, nnz, name):
    theirs, ours = pair(sizes, dense, nnz)
    for dim in (*range(len(sizes) + len(dense)), -1):
        same(getattr(reductions, name)(ours, dim), getattr(torch.sparse, name)(theirs, dim))
        got = getattr(reductions, name)(ours, dim, weft.float32)
        same(got, getattr(torch.sparse, name)(theirs, dim, dtype=torch.float32))
    with pytest.raises(IndexError, match="Dimension out of range"):
        getattr(reductions, name)(ours, 5)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        getattr(reductions, name)(pair(sizes, dense, nnz, "int64")[1], 0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_compressed_tensors(name):
    theirs, ours = pair((4, 6), (), 12)
    expected = getattr(torch.sparse, name)(theirs, 1).to_dense()
    got = getattr(reductions, name)(ours.to_sparse_csr(), 1)
    assert got.layout is weft.sparse_csr
    torch.testing.assert_close(to_torch(got.to_dense()), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: reductions.softmax(x, 1).to_dense(),
        lambda x: reductions.log_softmax(x, 0).to_dense(),
        lambda x: x.sum(0).to_dense(),
        lambda x: x.sum((0, 1)),
        lambda x: x.sum().square(),
    ],
)
def test_derivatives(function):
    indices, values = entries((4, 5), (2,), 9, "float64")
    places = to_weft(indices)

    def of_values(values):
        return function(weft.sparse_coo_tensor(places, values, (4, 5, 2)))

    values = to_weft(values).requires_grad_()
    assert weft.autograd.gradcheck(of_values, (values,))
    assert weft.autograd.gradgradcheck(of_values, (values,))


@pytest.mark.parametrize("name", ["cross_entropy", "scaled_dot_product_attention"])
def test_functions_of_the_dense_softmax_refuse(name):
    x = weft.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse()
    others = (weft.tensor([0, 1]),) if name == "cross_entropy" else (x, x)
    with pytest.raises(
        NotImplementedError, match=f"{name} is not implemented for sparse tensors: write x.to_dense"
    ):
        getattr(weft.nn.functional, name)(x, *others)


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool", "complex64"])
def test_sums_along_a_dim_of_a_matrix(layout, dtype):
    for shape in ((5, 7), (1, 4), (4, 1), (0, 3), (3, 0)):
        dense = (weft.rand(shape) * 9).int().masked_fill(weft.rand(shape) < 0.6, 0).to(getattr(weft, dtype))
        x = dense.to_sparse(layout=getattr(weft, layout))
        for dim in (0, 1, -1, (0,)):
            found, expected = x.sum(dim, keepdim=True), dense.sum(dim, keepdim=True)
            assert found.layout is x.layout and found.dtype is expected.dtype
            assert weft.equal(found.to_dense(), expected)
            assert found.values().numel() == (dense != 0).any(dim).sum()


def test_sums_along_a_dim_of_a_matrix_have_gradients_and_infinite_values():
    x = weft.tensor([[1.0, 0, 2], [0, weft.inf, 0], [0, 0, 0]]).to_sparse_csr().requires_grad_()
    for dim, expected in ((0, [1, 3, 2]), (1, [1, 1, 2])):
        x.grad = None
        found = x.sum(dim, keepdim=True).to_dense()
        weft.testing.assert_close(found, x.detach().to_dense().sum(dim, keepdim=True))
        (found.flatten() * weft.arange(1.0, 4)).sum().backward()
        assert x.grad.values().tolist() == expected
