"""Sparse tensors in other dtypes, and copies into them, compared with PyTorch's."""

import pytest
from sparse_expressions import LAYOUTS, compare, compare_gradients, evaluated

import weft


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "text",
    [
        "x.to(torch.float32)", "x.float()", "x.half()", "ints.double()", "x.int()", "x.bool()", "x.cfloat()", "x.type(torch.float32)",
        "x.type(torch.FloatTensor)", "x.to(torch.float64) is x", "x.to('cpu') is x", "x.cpu() is x", "x.double() is x", "x.to(ints)",
        "x.to(d.float())", "x.type_as(ints)", "x.to(torch.float64, copy=True)", "x.to('cpu', torch.float16)", "x.to(nothing)",
        "d.to(ints)", "x.to(torch.float64, copy=True) is x", "x.clone()",
    ],
)  # fmt: skip
def test_dtypes(layout, text):
    compare(layout, text)


@pytest.mark.parametrize("text", ["u.double()", "hybrid.half()", "u.coalesce().double()", "u.type()", "ints.type()", "flags.type()", "z.type()", "u.type('torch.sparse.DoubleTensor')", "u.type(torch.sparse.DoubleTensor)"])  # fmt: skip
def test_coordinates(text):
    compare("sparse_coo", text)


def test_a_copy_shares_no_memory():
    x = weft.eye(3).to_sparse_csr()
    copy = x.to(weft.float32, copy=True)
    copy.values().fill_(5)
    copy.col_indices().fill_(0)
    assert x.to_dense().tolist() == weft.eye(3).tolist()


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("text", ["g.float()", "g.half()", "g.clone()"])
def test_gradients(layout, text):
    compare_gradients(layout, f"({text}).to_dense().abs().sum()", "g")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "text",
    [
        "x.copy_(x * 2); x", "ints.copy_(y); ints", "x.copy_(d)", "d.copy_(x)", "g.copy_(x)", "x.copy_(x) is x",
        "x.copy_(torch.zeros(2, 2).to_sparse())",
    ],
)  # fmt: skip
def test_copies(layout, text):
    compare(layout, text)


@pytest.mark.parametrize(
    "text",
    [
        "u.copy_(v); u", "u.coalesce().copy_(v)", "ints.copy_(u); ints", "u.copy_(hybrid); u",
        "u.copy_(torch.ones(5, 5).to_sparse()); u", "u.zero_(); u.copy_(hybrid); u",
    ],
)  # fmt: skip
def test_copies_of_coordinates(text):
    compare("sparse_coo", text)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_goes_to_the_source_of_a_copy(layout):
    got = evaluated(
        weft, layout, "y = x * 2; y.copy_(g); (y * 3).to_dense().sum().backward(); g.grad.to_dense()"
    )
    kept = evaluated(weft, layout, "x.clone().fill_(3).to_dense()")
    assert got.tolist() == kept.tolist()


def test_a_copy_into_a_tensor_of_another_layout_says_what_to_write():
    with pytest.raises(RuntimeError, match="to_dense"):
        weft.ones(3, 3).copy_(weft.eye(3).to_sparse())
