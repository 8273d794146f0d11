"""Sparse tensors that change their sizes, compared with PyTorch's."""

import pytest
import torch
from sparse_expressions import LAYOUTS, compare, evaluated

import weft


@pytest.mark.parametrize(
    "text",
    [
        "u.sparse_resize_((4, 4), 2, 0); u", "u.sparse_resize_((6, 5), 2, 0); u", "x.sparse_resize_((6, 5), 2, 0); x",
        "u.sparse_resize_((1, 4), 2, 0)", "u.sparse_resize_((4, 4), 1, 1)", "u.sparse_resize_((4, 4, 4), 2, 1)",
        "u.sparse_resize_((4, 4), 2, 1)", "u.sparse_resize_([6, 5], 2, 0); u", "u.sparse_resize_(size=(6, 5), sparse_dim=2, dense_dim=0); u",
        "u.sparse_resize_(5, 5)", "hybrid.sparse_resize_((2, 3, 1), 2, 1)", "hybrid.sparse_resize_((4, 3, 2), 2, 1); hybrid",
        "u.zero_(); u.sparse_resize_((1, 3, 2), 1, 2); u", "u.sparse_resize_and_clear_((2, 2), 2, 0); u",
        "u.sparse_resize_and_clear_((2, 2, 3), 2, 1); u", "u.sparse_resize_and_clear_((2, 2, 3), 2, 0)", "d.sparse_resize_((2, 2), 2, 0)",
        "u.resize_as_sparse_(u.coalesce()); u", "y.sparse_resize_((6, 6), 2, 0); u.resize_as_sparse_(y); u", "u.resize_as_sparse_(hybrid)",
        "u.resize_as_sparse_(d)", "d.resize_as_sparse_(u)", "torch.resize_as_sparse_(u, x)", "u.resize_as_(x); u", "d.resize_as_(u); d",
        "u.resize_as_sparse_(x.to_sparse_csr())", "g.sparse_resize_((6, 6), 2, 0)",
    ],
)  # fmt: skip
def test_coordinates(text):
    compare("sparse_coo", text)


def test_grown_values_are_zero():
    """PyTorch leaves them uninitialised."""
    x = weft.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]], (2, 2))
    assert x.sparse_resize_((3, 3), 1, 1).to_dense().tolist() == [[1, 2, 0], [3, 4, 0], [0, 0, 0]]


@pytest.mark.parametrize("text", ["x.resize_(6, 4); x", "x.resize_((4, 6)); x", "x.resize_(4, 3)", "x.resize_as_sparse_(x * 2); x", "x.resize_as_sparse_(d.to_sparse())", "x.resize_(4, 4); x"])  # fmt: skip
def test_rows(text):
    compare("sparse_csr", text)


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("sizes", [(6, 4), (4, 6), (8, 8)])
def test_new_rows_and_columns_are_empty(layout, sizes):
    x = evaluated(weft, layout, f"x.resize_({sizes}); x")
    x.to_sparse_coo()
    wanted = weft.zeros(sizes, dtype=weft.float64)
    wanted[:4, :4] = evaluated(weft, layout, "d")
    assert x.to_dense().tolist() == wanted.tolist()


@pytest.mark.parametrize(("layout", "sizes"), [("sparse_csr", (2, 4)), ("sparse_csc", (4, 2)), ("sparse_bsr", (2, 4)), ("sparse_bsc", (4, 2))])  # fmt: skip
def test_entries_that_are_cut_off_are_dropped(layout, sizes):
    x = evaluated(weft, layout, f"x.resize_({sizes}); x")
    assert x.to_dense().tolist() == evaluated(weft, layout, f"d[:{sizes[0]}, :{sizes[1]}]").tolist()


@pytest.mark.parametrize("text", ["x.resize_(3, 4)", "x.resize_(2, 2, 2)", "x.sparse_resize_((4, 4), 2, 0)"])
def test_sizes_that_do_not_fit(text):
    assert isinstance(evaluated(weft, "sparse_bsr", text), (RuntimeError, NotImplementedError))


def test_a_detached_tensor_keeps_its_sizes():
    x = weft.eye(3).to_sparse()
    other = x.detach()
    x.sparse_resize_((5, 5), 2, 0)
    assert other.shape == (3, 3) and other.to_dense().shape == (3, 3)


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_a_compressed_tensor_resized_as_another_takes_its_indices(layout):
    found = []
    for lib in (torch, weft):
        blocks = {"blocksize": (2, 2)} if "bs" in layout else {}
        x, small = (lib.eye(size).mul(2).to_sparse(layout=getattr(lib, layout), **blocks) for size in (6, 4))
        x.resize_as_sparse_(small)
        x = x.to_sparse(layout=getattr(lib, layout), **blocks)
        found.append((tuple(x.shape), x.to_dense().tolist()))
    assert found[0] == found[1]


def test_another_layout_cannot_be_resized_as():
    with pytest.raises(RuntimeError, match="same layout"):
        weft.eye(3).to_sparse_csr().resize_as_sparse_(weft.eye(4).to_sparse_csc())


def test_resizing_as_another_tensor_keeps_the_dtype_of_indices():
    x = weft.eye(3).to_sparse_csr()
    narrow = weft.sparse_csr_tensor(
        weft.tensor([0, 1], dtype=weft.int32), weft.tensor([0], dtype=weft.int32), weft.ones(1), (1, 1)
    )
    narrow.resize_as_sparse_(x)
    assert narrow.crow_indices().dtype is narrow.col_indices().dtype is weft.int32
    assert narrow.shape == (3, 3)
