"""Copies of the indices of CSR matrices as int32, after some products with vectors."""

import pytest

import weft
from weft.layouts.sparse import narrowing

SIZE = 60


@pytest.fixture(autouse=True)
def small_matrices_are_enough(monkeypatch):
    monkeypatch.setattr(narrowing, "_FEWEST", 1)


def matrix():
    weft.manual_seed(0)
    dense = weft.randn(SIZE, SIZE).masked_fill(weft.rand(SIZE, SIZE) < 0.7, 0)
    return dense, dense.to_sparse_csr()


def copy_of(x):
    return x._storage.narrow.copy


def used(x, vector):
    expected = x @ vector
    for _ in range(narrowing._USES):
        assert weft.equal(x @ vector, expected)
    return expected


def test_copies_give_the_same_numbers():
    dense, x = matrix()
    vector = weft.randn(SIZE)
    weft.testing.assert_close(used(x, vector), dense @ vector)
    assert [part.dtype for part in copy_of(x)] == [weft.int32, weft.int32]
    doubled = 2 * x
    assert copy_of(doubled) is copy_of(x)
    weft.testing.assert_close(doubled @ vector, 2 * (dense @ vector))
    assert copy_of(x.clone()) is None and x.col_indices().dtype is weft.int64


def test_writes_to_the_indices_count():
    _, x = matrix()
    vector = weft.randn(SIZE)
    used(x, vector)
    x.col_indices().copy_(x.col_indices().flip(0))
    weft.testing.assert_close(x @ vector, (x.to_dense() @ vector))
    assert copy_of(x) is None
    used(x, vector)
    x.crow_indices()[1:-1] = 0
    weft.testing.assert_close(x @ vector, (x.to_dense() @ vector))


def test_indices_that_others_may_write_to_are_not_copied():
    _, x = matrix()
    vector = weft.randn(SIZE)
    used(x, vector)
    array = x.col_indices().numpy()
    array[:] = array[::-1].copy()
    weft.testing.assert_close(x @ vector, (x.to_dense() @ vector))
    used(x, vector)
    assert copy_of(x) is None


@pytest.mark.parametrize("column", [-1, SIZE, 2**32, 2**40])
def test_indices_out_of_range_stay_an_error(column):
    _, x = matrix()
    columns = x.col_indices().clone()
    columns[5] = column
    wrong = weft.sparse_csr_tensor(x.crow_indices(), columns, x.values(), x.shape, check_invariants=False)
    for _ in range(2 * narrowing._USES):
        with pytest.raises(RuntimeError, match="out of range"):
            wrong @ weft.randn(SIZE)


def test_indices_made_in_inference_mode():
    with weft.inference_mode():
        dense, x = matrix()
        vector = weft.randn(SIZE)
        weft.testing.assert_close(used(x, vector), dense @ vector)
    assert copy_of(x) is None


def test_gradients():
    dense, x = matrix()
    vector = weft.randn(SIZE)
    used(x, vector)
    vector.requires_grad_()
    (weft.sparse.mm(x, vector.unsqueeze(1)).sum() + (x @ vector).sum()).backward()
    weft.testing.assert_close(vector.grad, 2 * dense.sum(0))
