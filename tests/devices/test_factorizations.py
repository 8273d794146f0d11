"""LU and QR factorizations of a device, and what is made of them, give what the CPU's give: in one block of columns and in several.

The device is the reference device, or the one that TESTED_DEVICE names. If that has kernels for matrices, nothing is computed on the host.
"""

import functools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_device import HERE, refuse_matrices_of_the_host

import weft as torch
from weft.ops.linalg.device_plans import has_kernels

REAL, COMPLEX = torch.float32, torch.complex128
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-10, torch.complex64: 1e-3, torch.complex128: 1e-10}


def check(function, *tensors):
    """The function gives on the device what it gives on the CPU."""
    everywhere = [function(*tensors), function(*(each.to(HERE) for each in tensors))]
    wanted, results = (
        [values] if isinstance(values, torch.Tensor) else list(values) for values in everywhere
    )
    for expected, got in zip(wanted, results, strict=True):
        assert (got.dtype, got.shape, got.stride()) == (expected.dtype, expected.shape, expected.stride())
        assert got.device == torch.device(HERE)
        tolerance = TOLERANCE.get(expected.dtype, 0)
        scale = expected.abs().max().item() if expected.numel() and tolerance else 0
        torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=tolerance * scale, equal_nan=True)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _on_the_device(monkeypatch):
    refuse_matrices_of_the_host(monkeypatch)


def regular(*shape, dtype=REAL):
    """Square matrices that are far from singular, whose pivots are not on the diagonal."""
    n = shape[-1]
    return (torch.randn(*shape, dtype=dtype) / n + torch.eye(n, dtype=dtype)).roll(1, -2)


SHAPES = [(1, 1), (5, 5), (33, 33), (2, 3, 70, 70), (100, 40), (2, 40, 100)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_lu(shape, dtype):
    a = torch.randn(*shape, dtype=dtype)
    check(torch.linalg.lu_factor_ex, a)
    check(torch.linalg.lu, a)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 70, 70)])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_what_solves_with_lu(shape, dtype):
    a = regular(*shape, dtype=dtype)
    b = torch.randn(*shape[:-1], 3, dtype=dtype)
    check(torch.linalg.solve, a, b)
    check(lambda a, b: torch.linalg.solve(a, b.mT, left=False), a, b)
    check(torch.linalg.inv_ex, a)
    check(torch.linalg.det, a)
    check(torch.linalg.slogdet, a)
    for left in (True, False):
        for adjoint in (True, False):

            def solve(a, b, left=left, adjoint=adjoint):
                factors = torch.linalg.lu_factor(a)
                return torch.linalg.lu_solve(*factors, b if left else b.mT, left=left, adjoint=adjoint)

            check(solve, a, b)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("n", [1, 5, 50])
@pytest.mark.parametrize("upper", [False, True])
def test_complex_cholesky(n, dtype, upper):
    half, b = torch.randn(2, n, n, dtype=dtype), torch.randn(2, n, 3, dtype=dtype)
    a = half @ half.mH + n * torch.eye(n, dtype=dtype)
    factor = torch.linalg.cholesky(a, upper=upper)
    check(lambda a: torch.linalg.cholesky(a, upper=upper), a)
    check(lambda b, factor: torch.cholesky_solve(b, factor, upper=upper), b, factor)
    check(lambda factor: torch.cholesky_inverse(factor, upper=upper), factor)
    check(lambda a, b: torch.linalg.solve_triangular(a, b, upper=upper), factor, b)
    check(lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=not upper), factor, b)
    check(lambda a, b: torch.linalg.solve_triangular(a, b.mH, upper=upper, left=False), factor, b)


def test_stacks_that_broadcast_and_vectors():
    a, b = regular(3, 1, 40, 40), torch.randn(4, 40, 2)
    check(torch.linalg.solve, a, b)
    check(torch.linalg.solve, a[0, 0], b)
    check(torch.linalg.solve, a[0], b[0, :, :1])
    check(torch.linalg.solve, a[0, 0], b[0, :, 0])


@given(
    m=st.integers(0, 40),
    n=st.integers(0, 40),
    step=st.sampled_from([1, 2, -1]),
    turned=st.booleans(),
    negative=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_lu_of_any_strides(m, n, step, turned, negative):
    def factorize(a):
        a = a.flip(0) if step < 0 else a[::step]
        a = a.mT if turned else a
        return torch.linalg.lu_factor_ex(a.conj() if negative else a)

    check(factorize, torch.randn(m, n, dtype=COMPLEX))


def test_singular_matrices():
    a = regular(3, 40, 40)
    a[1, :, 35] = 0
    check(lambda a: torch.linalg.lu_factor_ex(a).info, a)
    check(torch.linalg.det, a)
    check(torch.linalg.slogdet, a)
    for function in (torch.linalg.inv, lambda a: torch.linalg.solve(a, a), torch.linalg.lu_factor):
        with pytest.raises(RuntimeError, match="Batch element 1"):
            function(a.to(HERE))
    info = torch.linalg.solve_ex(a.to(HERE), torch.ones(3, 40, 1, device=HERE)).info
    assert info.tolist() == [0, 36, 0]


def test_numbers_that_are_not_finite():
    a, b = regular(50, 50), torch.ones(50, 1)
    a[20, 10] = float("inf")  # the row is the equation that this unknown is 0
    check(lambda a, b: torch.linalg.solve(a, b), a, b)
    a[20, 10] = float("nan")
    assert torch.linalg.solve(a.to(HERE), b.to(HERE)).isnan().any()
    assert torch.linalg.det(a.to(HERE)).isnan()


def test_pivots_that_no_factorization_gives():
    a, b = torch.eye(3, device=HERE), torch.ones(3, 1, device=HERE)
    with pytest.raises(RuntimeError, match="Pivots given to lu_solve"):
        torch.linalg.lu_solve(a, torch.tensor([1, 2, 9], dtype=torch.int32, device=HERE), b)


@pytest.mark.parametrize("shape", [*SHAPES, (1000, 3), (2, 3, 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_qr(shape, dtype):
    a = torch.randn(*shape, dtype=dtype)
    check(torch.geqrf, a)
    for mode in ("reduced", "complete", "r"):
        check(lambda a, mode=mode: torch.linalg.qr(a, mode)[mode == "r" :], a)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_products_with_q(dtype, left, transpose):
    a, c = torch.randn(2, 70, 40, dtype=dtype), torch.randn(2, 70, 5, dtype=dtype)
    check(lambda a: torch.linalg.householder_product(*torch.geqrf(a)), a)
    check(lambda a: torch.linalg.householder_product(*torch.geqrf(a[..., :30])), a)

    def multiply(a, c):
        return torch.ormqr(*torch.geqrf(a), c if left else c.mT, left, transpose)

    check(multiply, a, c)


@pytest.mark.parametrize("scale", [1e-30, 1e-42, 1e30, 0])
def test_reflections_of_extreme_numbers(scale):
    a = (torch.randn(40, 20) * scale).to(HERE)
    a[:, 3] = 0
    Q, R = torch.linalg.qr(a)
    torch.testing.assert_close((Q.mT @ Q).cpu(), torch.eye(20), rtol=0, atol=1e-5)
    exact, scale = a.double(), max(scale, 1e-45)
    torch.testing.assert_close(
        Q.double() @ R.double() / scale, exact / scale, rtol=0, atol=4 if scale < 1e-40 else 1e-5
    )


def test_qr_of_numbers_that_are_not_finite():
    a = torch.randn(40, 20)
    a[3, 4] = float("nan")
    R = torch.linalg.qr(a.to(HERE)).R
    assert R[:, :4].isfinite().all()
    assert R[4:, 4:].triu().isnan().any()


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 4, 4), (0, 3, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_matrix_exponentials(shape, dtype):
    a = torch.randn(*shape, dtype=dtype)
    for scale in (1e-3, 1, 20):  # without squarings, and with several
        check(torch.linalg.matrix_exp, a * scale)
    if len(shape) == 4:  # matrices of a stack are squared as often as each needs
        check(torch.linalg.matrix_exp, a * torch.logspace(-3, 1, 6).reshape(2, 3, 1, 1))
    check(torch.linalg.matrix_exp, a.mT)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_matrix_exponentials_of_numbers_that_are_not_finite(bad):
    for n in (1, 3):
        a = torch.ones(2, n, n)
        a[0, 0, 0] = bad
        got = torch.linalg.matrix_exp(a.to(HERE)).cpu()
        torch.testing.assert_close(got, torch.linalg.matrix_exp(a), equal_nan=True)


@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.qr,
        lambda a: torch.linalg.qr(a[..., :2, :]).R,
        lambda a: torch.linalg.householder_product(a, a[..., 0, :]),
        torch.linalg.inv,
        torch.linalg.det,
        lambda a: torch.linalg.slogdet(a).logabsdet,
        lambda a: torch.linalg.solve(a, a.mT),
        lambda a: torch.linalg.lu(a).U,
        lambda a: torch.linalg.cholesky(a @ a.mH),
        torch.linalg.matrix_exp,
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, COMPLEX])
def test_gradients(function, dtype):
    a = regular(2, 3, 3, dtype=dtype).to(HERE).requires_grad_()
    assert torch.autograd.gradcheck(function, (a,))


SYSTEMS = [
    ((7, 4), (7, 3)),
    ((4, 7), (4, 2)),
    ((5, 5), (5,)),
    ((3, 30, 20), (3, 30, 2)),
    ((3, 6, 4), (1, 6, 2)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize("a, b", SYSTEMS)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelss", "gelsd"])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_least_squares(dtype, driver, a, b):
    check(
        functools.partial(torch.linalg.lstsq, driver=driver),
        torch.randn(a, dtype=dtype),
        torch.randn(b, dtype=dtype),
    )


@pytest.mark.parametrize("driver", ["gelsy", "gelss", "gelsd"])
def test_least_squares_of_lower_rank(driver):
    a = torch.randn(8, 3, dtype=torch.float64) @ torch.randn(3, 5, dtype=torch.float64)

    def solution_and_rank(a, b):
        found = torch.linalg.lstsq(a, b, driver=driver)
        return found.solution, found.rank, found.residuals

    check(solution_and_rank, a, torch.randn(8, 2, dtype=torch.float64))


def test_the_driver_of_least_squares():
    """It is PyTorch's on CUDA, which gives no rank."""
    a, b = torch.randn(5, 3), torch.randn(5, 1)
    found = torch.linalg.lstsq(*(each.to(HERE) for each in (a, b)))
    assert (found.rank.numel() == 0) is has_kernels(found.solution.spec)
    torch.testing.assert_close(found.solution.cpu(), torch.linalg.lstsq(a, b).solution)


def test_least_squares_along_gradients():
    def slopes(a, b):
        leaves = [each.detach().clone().requires_grad_() for each in (a, b)]
        solution, residuals, *_ = torch.linalg.lstsq(*leaves, driver="gels")
        return torch.autograd.grad(solution.square().sum() + residuals.sum(), leaves)

    check(slopes, torch.randn(7, 4, dtype=torch.float64), torch.randn(7, 2, dtype=torch.float64))
