"""Stacks of small matrices: the same results as from a call of LAPACK for each matrix."""

import numpy as np
import pytest
import torch

import weft

COUNT = 16 * 200  # so many that all of them go the way of stacks


def stack(dtype, n, columns=None, seed=0):
    rng = np.random.default_rng(seed)
    shape = (2, COUNT // 2, n, columns or n)
    found = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


def compare(function, *arrays):
    expected = function(torch, *map(torch.from_numpy, arrays))
    found = function(weft, *map(weft.from_numpy, arrays))
    for a, b in zip(expected, found, strict=True):
        assert a.stride() == b.stride()
        np.testing.assert_allclose(b.resolve_conj().numpy(), a.resolve_conj().numpy(), rtol=1e-8, atol=1e-8)


def positive(a):
    return a @ a.conj().swapaxes(-1, -2) + np.eye(a.shape[-1])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_equations(dtype, n):
    a, b = stack(dtype, n) + 9 * np.eye(n), stack(dtype, n, 3, seed=1)
    compare(lambda T, a, b: [T.linalg.solve(a, b)], a, b)
    compare(lambda T, a, b: [T.linalg.solve(a[0], b), T.linalg.solve(a, b[0, 0])], a, b)
    compare(lambda T, a: [T.linalg.inv(a), T.linalg.det(a), *T.linalg.slogdet(a)], a)
    compare(lambda T, a, b: [T.linalg.lu_solve(*T.linalg.lu_factor(a), b)], a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("size", [(3, 3), (2, 4), (4, 2)])
def test_lu(dtype, size):
    compare(lambda T, a: [*T.linalg.lu_factor(a), *T.linalg.lu(a)], stack(dtype, *size))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("upper", [False, True])
def test_triangles(dtype, upper):
    a, b = positive(stack(dtype, 3)), stack(dtype, 3, 2, seed=1)
    compare(lambda T, a: [T.linalg.cholesky(a, upper=upper)], a)
    compare(lambda T, a, b: [T.cholesky_solve(b, a, upper)], a, b)
    for unit in (False, True):
        compare(lambda T, a, b: [T.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)], a, b)  # noqa: B023
        compare(
            lambda T, a, b: [T.linalg.solve_triangular(a, b.mT, upper=upper, left=False, unitriangular=unit)],  # noqa: B023
            a,
            b,
        )


def test_singular_matrices_are_named():
    a = stack(np.float64, 3)
    a[1, 7] = 0
    for function in (weft.linalg.inv, lambda a: weft.linalg.solve(a, a)):
        with pytest.raises(weft.linalg.LinAlgError, match=f"Batch element {COUNT // 2 + 7}"):
            function(weft.from_numpy(a))
    compare(lambda T, a: [T.linalg.det(a), *T.linalg.slogdet(a), T.linalg.lu_factor_ex(a)[2]], a)
    compare(lambda T, a: [T.linalg.inv_ex(a)[1], T.linalg.solve_ex(a, a)[1]], a)


def test_matrices_that_are_not_positive_definite_are_named():
    a = positive(stack(np.float64, 3))
    a[1, 7, 1, 1] = -1
    a[1, 9, 0, 0] = np.nan
    compare(lambda T, a: [T.linalg.cholesky_ex(a)[1]], a)
