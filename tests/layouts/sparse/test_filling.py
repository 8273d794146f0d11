"""Sparse tensors without entries, and filled ones, compared with PyTorch's."""

import pytest
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
