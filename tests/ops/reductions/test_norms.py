"""Norms of vectors and matrices against PyTorch."""

import math

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import random
from oracle import check

import weft

INF = math.inf
ORDERS = st.sampled_from((0, 1, 2, 3, 0.5, -1, -2.5, INF, -INF))
FLOATS = st.sampled_from((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64))


@pytest.mark.may_raise(least=0.65)
@settings(max_examples=150, deadline=None)
@given(
    ORDERS,
    FLOATS,
    st.sampled_from((None, 0, 1, -1, (0, 1), (0, 1, 2))),
    st.booleans(),
    st.sampled_from([(3, 4, 2), (3, 0, 2)]),
)
def test_vector_norms(order, dtype, dim, keepdim, shape):
    check("linalg.vector_norm", random(*shape).to(dtype), order, dim, keepdim)
    check("norm", random(*shape).to(dtype), order, dim, keepdim)


@pytest.mark.refuses({"dtype0": 4, "dtype1": 4, "dtype2": 6, "dtype3": 7, "dtype4": 8})
@pytest.mark.parametrize("dtype", (torch.float64, torch.float32, torch.float16, torch.complex64, torch.int64))
def test_norms_in_another_dtype(dtype):
    for input in (
        random(3, 4).float(),
        random(3, 4).half(),
        torch.ones(2, 2).long(),
        random(3).to(torch.complex64),
    ):
        check("linalg.vector_norm", input, dtype=dtype)
        check("linalg.matrix_norm", input, dtype=dtype)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(("fro", "nuc", 1, -1, 2, -2, INF, -INF)),
    st.sampled_from([(-2, -1), (0, 1), (2, 0)]),
    st.booleans(),
)
def test_matrix_norms(order, dim, keepdim):
    check("linalg.matrix_norm", random(3, 4, 2), order, dim, keepdim)
    check("linalg.norm", random(3, 4, 2), order, dim, keepdim)
    check("norm", random(3, 4, 2), order, dim, keepdim)


@pytest.mark.refuses(
    {"None": 1, "fro": 5, "nuc": 8, "1": 3, "2": 3, "-2": 3, "inf": 3, "0": 4, "3": 4, "what": 10}
)
@pytest.mark.parametrize("order", (None, "fro", "nuc", 1, 2, -2, INF, 0, 3, "what"))
def test_norm_chooses_between_vectors_and_matrices(order):
    for shape in ((4,), (3, 4), (2, 3, 4), ()):
        check("linalg.norm", random(*shape), order)
        check("norm", random(*shape), order)
    check("linalg.norm", random(2, 3, 4), order, 1)
    check("linalg.norm", random(2, 3, 4), order, (0, 1, 2))


def test_other_norms():
    check("frobenius_norm", random(2, 3), (0, 1))
    check("nuclear_norm", random(3, 4))
    for p in (None, 2, -2, 1, -1, INF, -INF, "fro", "nuc"):
        check("linalg.cond", random(2, 3, 3), p)
    check("linalg.cond", torch.tensor([[1.0, 2.0], [2.0, 4.0]]), 1)


@pytest.mark.refuses({"0": 2})
@pytest.mark.parametrize("p", (0, 1, 2, 3, INF))
def test_dist_and_renorm(p):
    check("dist", random(3, 4), random(4, seed=1), p)
    check("renorm", random(3, 4, 2), p, 1, 1.5)
    check("renorm_", random(3, 4, 2), p, -1, 0.1, method=True)


BOUNDS_OF_RENORM = """
(lambda x: (torch.renorm(x, 2, 0, inf).sum().backward(), x.grad))(torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True))
(lambda x: (torch.renorm(x, 2, 0, 1e300).sum().backward(), x.grad))(torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True))
(lambda x: (torch.renorm(x, 2, 0, 3.0).sum().backward(), x.grad.round(decimals=5)))(torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True))
(lambda x: (torch.renorm(x, 1, 1, 1.0).real.sum().backward(), torch.view_as_real(x.grad).round(decimals=5)))(torch.tensor([[1.0, 2j], [3.0, 4 + 1j]], requires_grad=True))
torch.renorm(torch.ones(2, 2), 2, 0, nan)  # raises
torch.renorm(torch.ones(2, 2), 2, 0, -1)  # raises
"""


@pytest.mark.parametrize("expression", lines(BOUNDS_OF_RENORM))
def test_bounds_of_renorm(expression):
    """A bound that no slice reaches passes gradients on, even an infinite one."""
    check_expression(expression)


@pytest.mark.parametrize("p", (1, 2, 3, 0.5, -1, INF))
def test_the_gradient_of_the_norm_of_one_number(p):
    numbers = [[-2.0], [0.0], [math.inf], [math.nan], [1e30]]
    gradients = []
    for library in (torch, weft):
        x = library.tensor(numbers, requires_grad=True)
        library.linalg.vector_norm(x, p, dim=1).sum().backward()
        gradients.append(x.grad.flatten().tolist())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-6)


KINDS_OF_ORDERS = """
torch.linalg.vector_norm(torch.ones(2), 1 + 2j)  # raises
torch.linalg.vector_norm(torch.ones(2), "2")  # raises
torch.linalg.vector_norm(torch.ones(2), None)  # raises
torch.linalg.vector_norm(torch.ones(2), torch.tensor(1.0))
torch.linalg.vector_norm(torch.ones(2), True)
torch.linalg.vector_norm(torch.ones(2), np.float64(2.0))
torch.norm(torch.ones(2), 1 + 2j, 0)  # raises
"""


@pytest.mark.parametrize("expression", lines(KINDS_OF_ORDERS))
def test_kinds_of_orders(expression):
    """An order is a real number; a complex one is another error than what is none."""
    check_expression(expression)


UNFIT = """
torch.renorm(torch.ones(2, 2), 2, 0, nan)  # raises
torch.linalg.matrix_norm(torch.ones(2, 2), 2, None)  # raises
torch.linalg.norm(torch.ones(2, 2), "fro", 0)  # raises
torch.linalg.matrix_norm(torch.ones(2, 2), 2, 0)  # raises
torch.norm(torch.ones(2, 2), "nuc", 0)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


OF_ONE_COMPLEX_NUMBER = """
torch.tensor([1e30j]).norm()
torch.tensor(1e-30 + 0j).norm()
torch.tensor([[1e30j], [1e-30]]).norm(dim=1)
torch.linalg.vector_norm(torch.tensor([3 - 4j]), 1e12)
torch.linalg.vector_norm(torch.tensor([complex(nan, -inf)]))
torch.linalg.vector_norm(torch.tensor([3 - 4j]), 0)
"""


@pytest.mark.parametrize("expression", lines(OF_ONE_COMPLEX_NUMBER))
def test_the_norm_of_one_complex_number_is_its_size(expression):
    check_expression(expression)


@pytest.mark.parametrize("order", (1, 2, 3, INF))
def test_the_gradient_of_the_norm_of_one_complex_number(order):
    gradients = []
    for library in (torch, weft):
        x = library.tensor([[3 - 4j]], requires_grad=True)
        x.norm(order, 1).sum().backward()
        gradients.append(x.grad.tolist())
    np.testing.assert_allclose(*gradients, rtol=1e-6)
