"""Sparse tensors without entries, and filled ones, compared with PyTorch's."""

import pytest
import torch
from sparse_expressions import LAYOUTS, compare, evaluated

import weft


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "text",
    [
        "torch.zeros_like(x)", "torch.zeros_like(x, dtype=torch.int32)", "torch.zeros_like(torch.zeros_like(x))", "x.zero_(); x",
        "torch.zeros_like(x, requires_grad=True).requires_grad", "torch.empty_like(x).shape", "str(torch.empty_like(x).layout)", "g.zero_()",
        "str(x.new_zeros((2, 2)).layout)", "str(x.new_empty(2, 2).layout)", "str(x.new_zeros(2, 2, dtype=torch.int32).dtype)",
    ],
)  # fmt: skip
def test_without_entries(layout, text):
    compare(layout, text)


@pytest.mark.parametrize("text", ["torch.zeros_like(hybrid)", "torch.zeros_like(u, layout=torch.strided)", "hybrid.zero_(); hybrid", "u.new_zeros(2, 3)"])  # fmt: skip
def test_coordinates_without_entries(text):
    compare("sparse_coo", text)


def test_matrices_of_a_batch_without_entries():
    compare("sparse_csr", "torch.zeros_like(torch.stack([d, d]).to_sparse_csr())")
    compare("sparse_bsc", "torch.zeros_like(torch.stack([d, d]).to_sparse_bsc((2, 2)))")


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("text", ["x.fill_(3); x", "ints.fill_(3); ints"])
def test_fill(layout, text):
    compare(layout, text)


def test_filled_coordinates_are_coalesced():
    x = weft.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [3.0, -4.0, 5.0], (2, 3))
    assert x.fill_(2) is x
    assert x.is_coalesced()
    assert x.to_dense().tolist() == [[2, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", ["y = g * 2; y.zero_()", "y = g * 2; y.fill_(1)"])
def test_the_old_values_get_a_gradient_of_zero(layout, text):
    got = evaluated(
        weft, layout, f"{text}; (y.to_dense().sum() + 0 * g.to_dense().sum()).backward(); g.grad.to_dense()"
    )
    assert not got.any()


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize(
    "text", ["torch.ones_like(x)", "torch.full_like(x, 2)", "torch.ones_like(x, dtype=torch.int32)"]
)
def test_entries_like_those_of_a_tensor(layout, text):
    compare(layout, text)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_entries(layout):
    x = evaluated(weft, layout, "torch.randn_like(x, dtype=torch.float32)")
    kept = evaluated(weft, layout, "torch.ones_like(x).to_dense() != 0")
    assert x.layout is getattr(weft, layout) and x.dtype is weft.float32
    assert ((x.to_dense() != 0) == kept).all()


def test_a_dense_tensor_like_a_sparse_one():
    compare("sparse_coo", "torch.ones_like(x, layout=torch.strided)")


KINDS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
BLOCKS = {"sparse_bsr": (2, 3), "sparse_bsc": (2, 3)}


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("own", [*KINDS, "hybrid", "hybrid csr", "batched csr"])
def test_zeros_like_in_another_layout(own, wanted):
    results = []
    for lib in (torch, weft):
        x = example(lib, own)
        try:
            result = lib.zeros_like(x, layout=getattr(lib, wanted))
        except RuntimeError:
            result = None
        results.append(result)
    if results[0] is not None:
        assert described(results[1]) == described(results[0])


def example(lib, kind):
    matrix, cube = lib.arange(24.0).view(4, 6), lib.arange(24.0).view(2, 3, 4)
    if kind == "hybrid":
        return cube.to_sparse(2)
    if kind == "hybrid csr":
        return cube.to_sparse_csr(dense_dim=1)
    if kind == "batched csr":
        return lib.ones(2, 3, 4).to_sparse_csr()
    return matrix.to_sparse(layout=getattr(lib, kind), blocksize=BLOCKS.get(kind))


def described(x):
    parts = [x._values()] if x.layout in (torch.sparse_coo, weft.sparse_coo) else [x.values()]
    return str(x.layout), tuple(x.shape), [tuple(part.shape) for part in parts], x.sparse_dim(), x.dense_dim()


def test_empty_like_keeps_the_indices_of_a_compressed_tensor():
    x = weft.eye(3).to_sparse_csr()
    made = weft.empty_like(x, dtype=weft.int32)
    assert (
        made.dtype is weft.int32 and made.col_indices().equal(x.col_indices()) and made.values().shape == (3,)
    )
    assert made.col_indices().data_ptr() != x.col_indices().data_ptr()


@pytest.mark.parametrize("library", [torch, weft])
def test_compressed_layouts_need_two_dims_and_keep_their_layout(library):
    for name in ("empty", "zeros"):
        for layout in (library.sparse_csr, library.sparse_csc):
            with pytest.raises(RuntimeError, match="Only batched sparse compressed"):
                getattr(library, name)(5, layout=layout)
    x = library.eye(4).to_sparse_csr()
    for layout in (library.sparse_csc, library.sparse_coo, library.strided):
        with pytest.raises(RuntimeError, match="empty_like with different sparse layout is not supported"):
            library.empty_like(x, layout=layout)


@pytest.mark.parametrize("library", [torch, weft])
def test_zeros_are_written_into_a_sparse_tensor(library):
    out = library.ones(4, 4).to_sparse()
    for zeros in (library.zeros(2, 3, out=out), library.empty((2, 3), out=out)):
        assert zeros is out
        assert out.shape == (2, 3)
        assert out._nnz() == 0
