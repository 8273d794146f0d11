"""Cholesky factorizations and triangular systems of a device give what the CPU's give, in one block of rows and in several.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from on_device import HERE

import weft as torch


def check(function, *tensors):
    expected, got = function(*tensors), function(*(each.to(HERE) for each in tensors))
    assert (got.dtype, got.shape, got.stride()) == (expected.dtype, expected.shape, expected.stride())
    assert got.device == torch.device(HERE)
    scale = expected.abs().max().item()
    torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-5 * scale)


def positive(*batch, n):
    half = torch.randn(*batch, n, n)
    return half @ half.mT + n * torch.eye(n)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("n", [1, 5, 32, 33, 100])
@pytest.mark.parametrize("upper", [False, True])
def test_factors_and_solutions(n, batch, upper):
    a, b = positive(*batch, n=n), torch.randn(*batch, n, 3)
    factor = torch.linalg.cholesky(a, upper=upper)
    check(lambda a: torch.linalg.cholesky(a, upper=upper), a)
    check(lambda b, factor: torch.cholesky_solve(b, factor, upper=upper), b, factor)
    check(lambda factor, b: torch.linalg.solve_triangular(factor, b, upper=upper), factor, b)
    check(lambda factor, b: torch.linalg.solve_triangular(factor.mT, b, upper=not upper), factor, b)
    check(lambda factor, b: torch.linalg.solve_triangular(factor, b.mT, upper=upper, left=False), factor, b)


def test_ones_on_the_diagonal_and_stacks_that_broadcast():
    factor = torch.randn(3, 40, 40) / 40
    b = torch.randn(4, 1, 40, 2)
    check(lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, unitriangular=True), factor, b)
    check(lambda a, b: torch.linalg.solve_triangular(a[0], b, upper=False, unitriangular=True), factor, b)
    check(
        lambda a, b: torch.linalg.solve_triangular(a.double(), b.double(), upper=False, unitriangular=True),
        factor,
        b,
    )


def test_matrices_that_are_not_positive():
    a = torch.eye(50).repeat(3, 1, 1)
    a[1, 40, 40], a[2, 3, 3] = -1, float("nan")
    check(lambda a: torch.linalg.cholesky_ex(a).info.float(), a)
    with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1.*order 41"):
        torch.linalg.cholesky(a.to(HERE))


def test_gradients():
    def slope(a):
        a = a.detach().requires_grad_()
        torch.linalg.cholesky(a).square().sum().backward()
        return a.grad

    check(slope, positive(n=40))
