"""In-place functions of sparse tensors: whose memory they write, and their gradients."""

import pytest
import torch

import weft

KINDS = ("coo", "csr")
FUNCTIONS = {
    name: () for name in "abs_ sin_ sqrt_ tanh_ square_ floor_ relu_ expm1_ log1p_ atan_ neg_ zero_".split()
} | {"mul_": (3,), "div_": (2,), "pow_": (2,)}


def given(lib, kind):
    dense = lib.tensor([[0, 1.0, 0], [2, 0, 3]])
    return dense.to_sparse() if kind == "coo" else dense.to_sparse_csr()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["abs_", "sin_", "neg_", "mul_", "floor_"])
def test_a_detached_tensor_shares_the_memory_of_the_values(name, kind):
    found = []
    for lib in (torch, weft):
        x = given(lib, kind)
        values = x.values()
        getattr(x.detach(), name)(*FUNCTIONS[name])
        found.append((x.to_dense().tolist(), values.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients(name, kind):
    found = []
    for form in (name, name.removesuffix("_")):
        x = given(weft, kind).requires_grad_()
        y = x * 0.5
        result = weft.zeros_like(y) if form == "zero" else getattr(y, form)(*FUNCTIONS[name])
        if form == "zero":
            continue
        (result.to_dense() ** 2).sum().backward()
        found.append((x.grad.to_dense().tolist(), result.to_dense().tolist()))
    assert found[0] == found[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_product_with_itself_in_place(kind):
    x = given(weft, kind).requires_grad_()
    y = x * 1
    y.mul_(y)
    y.to_dense().sum().backward()
    assert x.grad.to_dense().tolist() == [[0, 2, 0], [4, 0, 6]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recorded", [False, True])
def test_a_write_through_the_values_of_a_recorded_tensor_is_refused(kind, recorded):
    """PyTorch refuses it for a leaf, and else in backward."""
    x = given(weft, kind).requires_grad_()
    y = x * 2 if recorded else x
    before = y.detach().to_dense()
    with pytest.raises(RuntimeError, match="in-place operation"):
        y.values().mul_(3)
    with weft.no_grad():
        y.values().mul_(3)
    assert y.detach().to_dense().equal(before * 3)


def test_values_of_a_recorded_tensor_are_a_view():
    x = given(weft, "csr").requires_grad_()
    assert x.values()._is_view() and not given(weft, "csr").detach().values().requires_grad


def test_copies_of_compressed_tensors_go_into_their_memory():
    for lib in (torch, weft):
        x = given(lib, "csr")
        x.detach().copy_(x * 2)
        assert x.to_dense().tolist() == [[0, 2, 0], [4, 0, 6]]
