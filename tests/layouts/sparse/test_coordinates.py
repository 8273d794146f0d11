"""Numbers of coordinate tensors, compared with PyTorch's sparse tensors."""

import itertools

import pytest
import torch
from oracle import to_torch, to_weft
from sparse_entries import entries, same

import weft
from weft.layouts.sparse import coordinates

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")
# Sizes of the sparse dims and of the dense ones, and the number of entries.
CASES = (
    ((4, 5), (), 12), ((4, 5), (2, 3), 12), ((3, 2, 4), (), 40), ((7,), (2,), 5), ((5, 5), (), 0), ((5, 5), (), 1),
    ((), (2,), 3), ((4, 5), (0,), 6), ((0, 5), (), 0), ((1000, 70000, 200), (), 50), ((2**40, 2**22), (), 50),
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES)
def test_coalesce(sizes, dense, nnz, dtype):
    indices, values = entries(sizes, dense, nnz, dtype)
    expected = torch.sparse_coo_tensor(indices, values, (*sizes, *dense)).coalesce()
    got = coordinates.coalesced(to_weft(indices), to_weft(values), sizes)
    same(got[0], expected._indices())
    same(got[1], expected._values())
    assert coordinates.is_coalesced(got[0], sizes)
    again = coordinates.coalesced(*got, sizes)
    same(again[0], expected._indices())
    same(again[1], expected._values())
    assert all(new._storage is not old._storage for new, old in zip(again, got) if old.numel())


def test_coalesce_sorted_entries_that_occur_twice():
    indices, values = torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.tensor([-0.0, -0.0, 1.0])
    expected = torch.sparse_coo_tensor(indices, values, (2, 2)).coalesce()
    got = coordinates.coalesced(to_weft(indices), to_weft(values), (2, 2))
    same(got[0], expected._indices())
    same(got[1].signbit(), expected._values().signbit())


def test_indices_out_of_range():
    indices = torch.tensor([[0, 1, 1, -1], [2, 0, 2, 5]])
    values = torch.ones(4)
    expected = torch.sparse_coo_tensor(indices, values, (2, 2)).coalesce()
    got = coordinates.coalesced(to_weft(indices), to_weft(values), (2, 2))
    same(got[0], expected._indices())
    same(got[1], expected._values())
    for function in (coordinates.to_dense, lambda i, v, sizes: coordinates.taken(weft.ones(2, 2), i, sizes)):
        with pytest.raises(RuntimeError, match="found negative index -1 for dim 0"):
            function(to_weft(indices), to_weft(values), (2, 2))
        with pytest.raises(RuntimeError, match="for dim 1, size is 2 but found index 2"):
            function(to_weft(indices[:, :3].contiguous()), to_weft(values[:3]), (2, 2))


@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES[:-1])
def test_keys(sizes, dense, nnz):
    indices = to_weft(entries(sizes, dense, nnz, "float32")[0])
    assert coordinates.indices_of(coordinates.keys_of(indices, sizes), sizes).tolist() == indices.tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES[:9])
def test_to_and_from_dense(sizes, dense, nnz, dtype):
    indices, values = entries(sizes, dense, nnz, dtype)
    expected = torch.sparse_coo_tensor(indices, values, (*sizes, *dense)).coalesce().to_dense()
    same(coordinates.to_dense(to_weft(indices), to_weft(values), sizes), expected)
    if sizes:
        back = expected.to_sparse(len(sizes))
        got = coordinates.from_dense(to_weft(expected), len(sizes))
        same(got[0], back._indices())
        same(got[1], back._values())
        mask = torch.sparse_coo_tensor(indices, values, (*sizes, *dense)).coalesce()
        taken = coordinates.taken(to_weft(expected), to_weft(mask._indices()), sizes)
        same(taken, expected.sparse_mask(mask)._values())


@pytest.mark.parametrize("coalesced", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES[:5])
def test_union(sizes, dense, nnz, coalesced):
    tensors = [
        torch.sparse_coo_tensor(*entries(sizes, dense, count, "float32", seed), (*sizes, *dense))
        for seed, count in ((1, nnz), (2, nnz + 3))
    ]
    x, y = (tensor.coalesce() if sort else tensor for tensor, sort in zip(tensors, coalesced))
    expected = x + y
    parts = [(to_weft(tensor._indices()), to_weft(tensor._values())) for tensor in (x, y)]
    if x._nnz():
        got = coordinates.union(*parts, sizes)
        same(got[0], expected._indices())
        same(got[1], expected._values())


def test_intersection_and_lookup():
    left, right = weft.tensor([1, 3, 4, 9]), weft.tensor([0, 3, 5, 9, 12])
    assert [each.tolist() for each in coordinates.intersection(left, right)] == [[1, 3], [1, 3]]
    assert [each.tolist() for each in coordinates.intersection(left, right[:0])] == [[], []]
    places, found = coordinates.lookup(left, right)
    assert found.tolist() == [False, True, False, True, False]
    assert left[places][found].tolist() == [3, 9]
    assert [each.tolist() for each in coordinates.lookup(left[:0], right)] == [[0] * 5, [False] * 5]


def test_merge_without_a_kernel():
    generator = torch.Generator().manual_seed(0)
    for sizes in ((5, 7), (0, 3), (4, 0), (30, 1)):
        pair = [torch.randint(6, (size,), generator=generator).numpy() for size in sizes]
        slow = coordinates._merge(*pair)
        quick = coordinates.merged(*map(weft.from_numpy, pair))
        assert slow[0] == quick.size
        assert [part.tolist() for part in slow[1:]] == [quick.left.tolist(), quick.right.tolist()]


@pytest.mark.parametrize("coalesced", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
@pytest.mark.parametrize(("sizes", "dense", "nnz"), CASES[:5])
def test_product(sizes, dense, nnz, dtype, coalesced):
    for other in (nnz + 3, max(nnz - 3, 0)):
        tensors = [
            torch.sparse_coo_tensor(*entries(sizes, dense, count, dtype, seed), (*sizes, *dense))
            for seed, count in ((1, nnz), (2, other))
        ]
        x, y = (tensor.coalesce() if sort else tensor for tensor, sort in zip(tensors, coalesced))
        expected = x * y
        parts = [
            (to_weft(tensor._indices()), to_weft(tensor._values()), tensor.is_coalesced())
            for tensor in (x, y)
        ]
        indices, values, is_coalesced = coordinates.product(*parts, sizes)
        assert is_coalesced == expected.is_coalesced()
        same(indices, expected._indices())
        torch.testing.assert_close(to_torch(values), expected._values(), rtol=1e-5, atol=1e-5)


def test_product_of_infinities():
    sides = (
        ([[0, 1, 1], [0, 1, 1]], [float("inf"), float("nan"), 1.0]),
        ([[0, 0, 1, 1], [1, 1, 1, 0]], [1.0, 2.0, 3.0, 2.0]),
    )
    x, y = (torch.sparse_coo_tensor(*side, (2, 2)) for side in sides)
    parts = [(to_weft(tensor._indices()), to_weft(tensor._values()), False) for tensor in (x, y)]
    indices, values, _ = coordinates.product(*parts, (2, 2))
    same(indices, (x * y)._indices())
    torch.testing.assert_close(to_torch(values), (x * y)._values(), equal_nan=True)
