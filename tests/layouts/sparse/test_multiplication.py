"""Matrix products of sparse tensors and their gradients, against PyTorch."""

import itertools

import numpy as np
import pytest
import torch

import weft

LAYOUTS = {"coo": None, "csr": None, "csc": None, "bsr": (2, 2), "bsc": (2, 2)}
DENSE = [[0.0, 2, 0, 0], [0, 0, -3, 4], [0, 0, 0, 0], [5, 0, 0, 6]]

PRODUCTS = {
    "mm": lambda t, x, m: x @ m,
    "mv": lambda t, x, m: x @ m[:, 0],
    "vm": lambda t, x, m: m[:, 0] @ x,
    "dense first": lambda t, x, m: m.t() @ x,
    "linear": lambda t, x, m: t.nn.functional.linear(m.t(), x),
    "addmm": lambda t, x, m: t.addmm(m, x, m, alpha=2, beta=3),
    "addmv": lambda t, x, m: t.addmv(m[:, 1], x, m[:, 0]),
    "batch": lambda t, x, m: t.bmm(t.stack([m.t() @ m] * 2).detach().to_sparse(), t.stack([m.t(), m.t()])),
}


def result_and_gradients(t, layout, complex_, product):
    dtype = t.complex128 if complex_ else t.float64
    matrix = t.tensor(DENSE, dtype=dtype) * (1 + 0.5j if complex_ else 1)
    x = matrix.to_sparse(layout=getattr(t, f"sparse_{layout}"), blocksize=LAYOUTS[layout]).requires_grad_()
    m = (t.arange(12, dtype=t.float64).reshape(4, 3) - 5).to(dtype) * (1 - 2j if complex_ else 1)
    m.requires_grad_()
    result = PRODUCTS[product](t, x, m)
    (result * result.conj()).sum().abs().backward()
    found = [result, x.grad, m.grad]
    return [None if each is None else np.array(each.detach().to_dense().tolist()) for each in found]


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products(layout, complex_, product):
    found = result_and_gradients(weft, layout, complex_, product)
    # PyTorch does not have all of these products for blocks; the gradient of all layouts is that of CSR.
    expected = result_and_gradients(torch, "csr", complex_, product)
    for got, want in zip(found, expected, strict=True):
        assert (got is None) == (want is None)
        if want is not None:
            np.testing.assert_allclose(got, want)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_sparse_with_sparse(left, right):
    d = weft.tensor(DENSE, dtype=weft.float64)
    e = (d * 2 + d.t()).detach()
    a, b = (
        each.to_sparse(layout=getattr(weft, f"sparse_{name}"), blocksize=LAYOUTS[name])
        for each, name in ((d, left), (e, right))
    )
    result = a @ b
    assert weft.equal(result.to_dense(), d @ e)
    if left == right and left != "bsc" and left != "bsr":
        theirs = torch.tensor(DENSE, dtype=torch.float64).to_sparse(layout=getattr(torch, f"sparse_{left}"))
        assert str(result.layout) == str((theirs @ theirs).layout)


def test_second_derivatives_of_a_product():
    x = weft.tensor(DENSE, dtype=weft.float64).to_sparse_csr()
    values = x.values().clone().requires_grad_()
    m = (weft.arange(12.0, dtype=weft.float64).reshape(4, 3) / 7).requires_grad_()

    def product(values, m):
        sparse = weft.sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, (4, 4))
        return weft.nn.functional.linear(m.t(), sparse)

    assert weft.autograd.gradcheck(product, (values, m))
    assert weft.autograd.gradgradcheck(product, (values, m))


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: x @ t.ones(3, 3),
        lambda t, x: t.ones(3, 3) @ x,
        lambda t, x: x @ t.ones(3),
        lambda t, x: x @ t.ones(4, 2, dtype=t.float64),
        lambda t, x: t.mv(x, t.ones(4, 1)),
    ],
)
def test_operands_that_do_not_fit(call):
    def error(t):
        with pytest.raises((RuntimeError, ValueError)) as caught:
            call(t, t.tensor(DENSE).to_sparse_csr())
        return caught.type

    assert error(weft) is error(torch)


def test_indices_out_of_range_raise():
    x = weft.sparse_csr_tensor([0, 1, 2], [0, 9], [1.0, 2.0], (2, 2))
    for call in (
        lambda: x @ weft.ones(2, 2),
        lambda: weft.ones(2, 2) @ x,
        lambda: x @ x,
        lambda: x @ weft.ones(2),
    ):
        with pytest.raises(RuntimeError, match="range"):
            call()


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_coo"])
@pytest.mark.parametrize("dtype", [weft.float64, weft.complex128])
def test_derivatives_of_two_sparse_matrices(layout, dtype):
    dense = weft.randn(4, 5, dtype=dtype), weft.randn(5, 6, dtype=dtype)
    x, y = (each.masked_fill(weft.rand(each.shape) < 0.5, 0).to_sparse_csr() for each in dense)

    def product(x_values, y_values):
        operands = []
        for each, values in ((x, x_values), (y, y_values)):
            csr = weft.sparse_csr_tensor(each.crow_indices(), each.col_indices(), values, each.shape)
            operands.append(csr.to_sparse(layout=getattr(weft, layout)))
        return (operands[0] @ operands[1]).values()

    values = [each.values().clone().requires_grad_() for each in (x, y)]
    assert weft.autograd.gradcheck(product, values)
    assert weft.autograd.gradgradcheck(product, values)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
def test_sampled_addmm_of_batches(batch):
    mask = torch.tensor([[1.0, 0, 2], [0, 3, 0]]).expand(*batch, 2, 3)
    left, right = torch.randn(*batch, 2, 4), torch.randn(*batch, 4, 3)
    expected = torch.sparse.sampled_addmm(mask.to_sparse_csr(), left, right, alpha=0.5)
    left, right = (weft.from_numpy(each.numpy()).requires_grad_() for each in (left, right))
    found = weft.sparse.sampled_addmm(
        weft.from_numpy(mask.contiguous().numpy()).to_sparse_csr(), left, right, alpha=0.5
    )
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.values().detach().numpy(), expected.values().numpy(), rtol=1e-5)
    found.values().sum().backward()
    assert left.grad.shape == left.shape
    assert right.grad.shape == right.shape


def test_sparse_input_of_dense_products():
    x = weft.eye(2)
    with pytest.raises(RuntimeError, match="sparse input of two dense matrices"):
        weft.addmm(x.to_sparse(), x, x)


def test_beta_zero_ignores_the_input():
    x = weft.tensor([[1.0, 0], [2, 3]])
    bad = weft.full((2, 2), weft.nan)
    for layout in (weft.sparse_csr, weft.sparse_csc, weft.sparse_coo):
        found = weft.addmm(bad.to_sparse(layout=layout), *[x.to_sparse(layout=layout)] * 2, beta=0)
        assert found.layout is layout
        assert weft.equal(found.to_dense(), x @ x)
        dense = weft.addmm(bad, *[x.to_sparse(layout=layout)] * 2, beta=0)
        assert dense.layout is weft.strided
        assert weft.equal(dense, x @ x)


def test_sampled_addmm_of_one_pattern_for_a_batch():
    mask = weft.tensor([[1.0, 0, 2], [0, 3, 0]])
    left, right = weft.randn(2, 2, 4), weft.randn(2, 4, 3)
    found = weft.sparse.sampled_addmm(mask.to_sparse_csr(), left, right)
    np.testing.assert_allclose(
        found.to_dense().numpy(), (mask + (left @ right) * (mask != 0)).numpy(), rtol=1e-5
    )
