"""Linear equations and least squares against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import BATCHES, DTYPES, both, close, definite, random

import weft


@settings(max_examples=60, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 4), st.integers(0, 3), st.booleans(), st.booleans())
def test_solve(batch, dtype, n, k, left, broadcast):
    a = random(*batch, n, n, dtype=dtype)
    many = (1,) * len(batch) if broadcast else batch
    b = random(*many, *((n, k) if left else (k, n)), dtype=dtype, seed=1)
    close(*both("linalg.solve", a, b, left=left))


def test_solve_for_vectors():
    close(*both("linalg.solve", random(3, 3), random(3)))
    close(*both("linalg.solve", random(2, 3, 3), random(2, 3)))
    close(*both("linalg.solve", random(2, 2, 3, 3), random(2, 2, 3)))


@settings(max_examples=60, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 4), st.integers(0, 3), st.booleans(), st.booleans(), st.booleans())
def test_solve_triangular(batch, dtype, n, k, left, upper, unitriangular):
    a = random(*batch, n, n, dtype=dtype) + 3 * torch.eye(n, dtype=dtype)
    b = random(*((n, k) if left else (k, n)), dtype=dtype)
    options = {"upper": upper, "left": left, "unitriangular": unitriangular}
    close(*both("linalg.solve_triangular", a, b, **options))
    close(*both("linalg.solve_triangular", a.mT, b, **options))


def test_a_zero_on_the_diagonal_of_a_triangle_gives_inf():
    got, expected = both("linalg.solve_triangular", torch.zeros(2, 2), torch.ones(2, 1), upper=True)
    assert not got.isfinite().any() and not expected.isfinite().any()


@pytest.mark.parametrize("transpose", (True, False))
@pytest.mark.parametrize("upper", (True, False))
def test_older_triangular_solve(upper, transpose):
    for got, expected in zip(
        *both("triangular_solve", random(2, 3, 2), definite(3, 3), upper, transpose), strict=True
    ):
        close(got, expected)


@pytest.mark.parametrize("upper", (True, False))
@pytest.mark.parametrize("dtype", (torch.float64, torch.complex64))
def test_from_cholesky_factors(upper, dtype):
    factor = torch.linalg.cholesky(definite(2, 3, 3, dtype=dtype), upper=upper)
    close(*both("cholesky_solve", random(2, 3, 4, dtype=dtype), factor, upper))
    close(*both("cholesky_inverse", factor, upper))


@pytest.mark.parametrize("left", (True, False))
@pytest.mark.parametrize("adjoint", (True, False))
@pytest.mark.parametrize("dtype", (torch.float64, torch.complex64))
def test_from_lu_factors(left, adjoint, dtype):
    factors, pivots = torch.linalg.lu_factor(random(2, 3, 3, dtype=dtype))
    b = random(*((2, 3, 4) if left else (2, 4, 3)), dtype=dtype)
    close(*both("linalg.lu_solve", factors, pivots, b, left=left, adjoint=adjoint))
    close(*both("lu_solve", b.mT if not left else b, factors, pivots))


@pytest.mark.parametrize("driver", (None, "gels", "gelsy", "gelsd", "gelss"))
@pytest.mark.parametrize(
    "shapes",
    [((4, 3), (4, 2)), ((3, 4), (3, 2)), ((2, 4, 3), (2, 4)), ((4, 3), (4,)), ((2, 4, 3), (1, 4, 2))],
)
def test_least_squares(driver, shapes):
    for got, expected in zip(
        *both("linalg.lstsq", *map(lambda s: random(*s), shapes), driver=driver), strict=True
    ):
        close(got, expected)


def test_rank_deficient_least_squares():
    a = torch.tensor([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]])
    for driver in ("gelsy", "gelsd", "gelss"):
        for got, expected in zip(*both("linalg.lstsq", a, random(3, 1).float(), driver=driver), strict=True):
            close(got, expected)


def test_the_older_triangular_solve_clones_its_coefficients():
    a, b = weft.eye(3).mT.requires_grad_(), weft.ones(3, 2, requires_grad=True)
    for stack in ((), (0,)):
        results = weft.triangular_solve(b.expand(*stack, 3, 2), a.expand(*stack, 3, 3))
        assert results[1].data_ptr() != a.data_ptr()
        assert len(weft.autograd.grad(list(results), (a, b), [weft.ones_like(each) for each in results])) == 2


UNFIT = """
torch.linalg.solve_triangular(torch.ones(2, 2).byte(), torch.ones(2, 2), upper=True)  # raises
torch.linalg.solve_triangular(torch.ones(2, 2).half(), torch.ones(2, 2).double(), upper=True)  # raises
torch.linalg.ldl_solve(torch.eye(2), torch.ones(2).int(), torch.ones(2))  # raises
torch.cholesky_solve(torch.ones(2, 2), torch.eye(2).int())  # raises
torch.cholesky_solve(torch.ones(2, 2).int(), torch.eye(2).int())  # raises
torch.linalg.lu_solve(torch.eye(3), torch.tensor(1).int(), torch.ones(3, 2))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
