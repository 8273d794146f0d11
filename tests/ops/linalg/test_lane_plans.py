"""Kernels that factorize a matrix in each lane: PyTorch's results, strides, pivots and errors, at any size, order and count."""

import numpy as np
import pytest
import torch

import weft

# Sizes around the lanes of a vector, counts around whole groups of them.
SIZES = (1, 2, 7, 8, 16, 17, 32)
COUNTS = (4, 15, 16, 33)


def matrices(shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def regular(shape, dtype=np.float64):
    return (matrices(shape, dtype) + 3 * shape[-1] ** 0.5 * np.eye(shape[-1])).astype(dtype)


def positive(shape, dtype=np.float64):
    a = matrices(shape)
    return (a @ a.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def orders(T, a):
    """Equal tensors in rows, in columns, as a part of a larger one, and with a pending negation."""
    whole = T.from_numpy(a)
    yield whole
    yield whole.mT.contiguous().mT
    yield T.stack((whole, whole), -1)[..., 1]
    yield T._neg_view(-whole)


def compare(function, *arrays, tolerance=1e-9):
    expected = function(torch, *map(torch.from_numpy, arrays))
    for a in orders(weft, arrays[0]):
        found = function(weft, a, *map(weft.from_numpy, arrays[1:]))
        for theirs, ours in zip(expected, found, strict=True):
            assert ours.stride() == theirs.stride()
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", SIZES)
def test_square_matrices(n):
    for count, dtype, tolerance in zip(COUNTS, "fdfd", (1e-3, 1e-9) * 2, strict=True):
        a, b = regular((count, n, n), dtype), matrices((count, n, 3), dtype, seed=1)
        compare(
            lambda T, a, b: [*T.linalg.solve_ex(a, b), T.linalg.solve(a, b[..., 0])],
            a,
            b,
            tolerance=tolerance,
        )
        compare(lambda T, a: [*T.linalg.inv_ex(a), T.linalg.solve(a, a, left=False)], a, tolerance=tolerance)
        compare(lambda T, a: T.linalg.slogdet(a), a, tolerance=tolerance)
        a = positive((count, n, n), dtype)
        compare(
            lambda T, a: [*T.linalg.cholesky_ex(a), T.linalg.cholesky(a, upper=True)], a, tolerance=tolerance
        )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
def test_triangles(n, upper, unitriangular):
    for count, columns, dtype, tolerance in zip(
        COUNTS, (1, 3, 40, 64), "fdfd", (1e-4, 1e-10) * 2, strict=True
    ):
        a, b = regular((count, n, n), dtype) / n, matrices((count, n, columns), dtype, seed=1)
        a[:, [0], [0]] *= -1

        def solve(T, a, b):
            sides = [b, b.mT.contiguous().mT]
            return [T.linalg.solve_triangular(a, x, upper=upper, unitriangular=unitriangular) for x in sides]

        compare(solve, a, b, tolerance=tolerance)


def test_triangles_with_zeros_and_numbers_that_are_not_finite():
    a, b = regular((20, 5, 5)), matrices((20, 5, 2), seed=1)
    a[3, 2, 2] = 0
    a[4, 2, 1] = np.nan
    b[6, 4, 1] = np.inf
    for upper in (False, True):
        ours = weft.linalg.solve_triangular(weft.from_numpy(a), weft.from_numpy(b), upper=upper)
        theirs = torch.linalg.solve_triangular(torch.from_numpy(a), torch.from_numpy(b), upper=upper)
        assert (np.isfinite(ours.numpy()) == np.isfinite(theirs.numpy())).all()


@pytest.mark.parametrize("shape", [(n, n) for n in SIZES] + [(3, 9), (9, 3), (32, 1), (1, 32)], ids=str)
def test_factors(shape):
    for count in COUNTS:
        a = matrices((count, *shape))  # far from its pivots, so that rows are swapped
        compare(lambda T, a: [*T.linalg.lu_factor_ex(a), *T.linalg.lu(a)], a)
        for mode in ("reduced", "complete", "r"):
            compare(lambda T, a: T.linalg.qr(a, mode)[mode == "r" :], a)  # noqa: B023


def test_determinants_of_swapped_rows():
    compare(lambda T, a: [T.linalg.det(a), *T.linalg.slogdet(a)], matrices((5, 20, 6, 6)))


def test_columns_that_are_clear_or_far_from_one():
    a = matrices((8, 5, 4))
    a[0] = 0
    a[1, :, 1] = 0
    a[2, 1:, 0] = 0
    a[3] *= 1e200
    a[4] *= 1e-200
    a[5] *= 1e-310
    Q, R = weft.linalg.qr(weft.from_numpy(a))
    size = np.abs(a).max((1, 2), keepdims=True) + 1e-320
    assert (np.abs((Q @ R).numpy() - a) <= 1e-13 * size + 1e-320).all()
    np.testing.assert_allclose((Q.mT @ Q).numpy(), np.broadcast_to(np.eye(4), (8, 4, 4)), atol=1e-14)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_stay_in_their_matrix(value):
    a = positive((20, 5, 5))
    good = weft.from_numpy(a)
    bad = good.clone()
    bad[7, 1, 1] = value
    others = [k for k in range(20) if k != 7]
    for function in (
        weft.linalg.lu_factor_ex,
        weft.linalg.qr,
        lambda a: weft.linalg.solve_ex(a, a),
        weft.linalg.slogdet,
    ):
        for clean, found in zip(function(good), function(bad), strict=True):
            assert weft.equal(clean[others], found[others])
    assert not weft.linalg.qr(bad)[1][7].isfinite().all()


def test_failures_are_named():
    a = regular((40, 6, 6))
    a[33, :, 2] = 0
    for function in (weft.linalg.inv, lambda a: weft.linalg.solve(a, a)):
        with pytest.raises(weft.linalg.LinAlgError, match="Batch element 33"):
            function(weft.from_numpy(a))
    compare(lambda T, a: [T.linalg.inv_ex(a)[1], T.linalg.solve_ex(a, a)[1], T.linalg.lu_factor_ex(a)[2]], a)
    compare(lambda T, a: [T.linalg.det(a), *T.linalg.slogdet(a)], a)
    with pytest.raises(RuntimeError, match=r"Batch element 33.*U\[3,3\]"):
        weft.linalg.lu_factor(weft.from_numpy(a))
    a = positive((40, 6, 6))
    a[35, 4, 4] = -1
    a[36, 2, 2] = np.nan
    with pytest.raises(weft.linalg.LinAlgError, match="Batch element 35.*order 5"):
        weft.linalg.cholesky(weft.from_numpy(a))
    compare(lambda T, a: [T.linalg.cholesky_ex(a)[1]], a)


def test_the_same_bits_in_any_group_and_on_any_number_of_threads():
    a = weft.from_numpy(matrices((300, 20, 20), np.float32))
    before = weft.get_num_threads()
    try:
        weft.set_num_threads(1)
        alone = [*weft.linalg.qr(a), *weft.linalg.lu_factor(a), weft.linalg.inv(a), weft.linalg.solve(a, a)]
    finally:
        weft.set_num_threads(before)
    part = a[7:40]
    shared = [*weft.linalg.qr(a), *weft.linalg.lu_factor(a), weft.linalg.inv(a), weft.linalg.solve(a, a)]
    parts = [
        *weft.linalg.qr(part),
        *weft.linalg.lu_factor(part),
        weft.linalg.inv(part),
        weft.linalg.solve(part, part),
    ]
    for one, two, three in zip(alone, shared, parts, strict=True):
        assert weft.equal(one, two)
        assert weft.equal(one[7:40], three)


def test_derivatives():
    a, b = regular((9, 5, 5)), matrices((9, 5, 2), seed=1)

    def gradients(T):
        x, y = (T.from_numpy(value).requires_grad_() for value in (a, b))
        Q, R = T.linalg.qr(x)
        (
            T.linalg.solve(x, y).sum() + T.linalg.slogdet(x)[1].sum() + (Q * R).sum() + T.linalg.det(x).sum()
        ).backward()
        return x.grad.numpy(), y.grad.numpy()

    for ours, theirs in zip(gradients(weft), gradients(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_stacks_that_kernels_do_not_take():
    a = regular((40, 33, 33))
    compare(lambda T, a: [T.linalg.det(a), T.linalg.lu_factor(a)[1]], a)
    a = regular((4, 3, 3))
    compare(lambda T, a, b: [T.linalg.solve(a, b), T.linalg.solve(a[0], b)], a, matrices((4, 3, 65), seed=1))
    assert weft.linalg.qr(weft.empty(5, 0, 3))[1].shape == (5, 0, 3)
    assert weft.linalg.solve(weft.empty(5, 0, 0), weft.empty(5, 0, 2)).shape == (5, 0, 2)


# ---- Eigenvalues -----------------------------------------------------------------------------------------------------


def check_eigh(a, tolerance, UPLO="L"):
    """Residuals, orthogonality and eigenvalues, as multiples of each matrix's norm."""
    n = a.shape[-1]
    triangle = np.tril(a) if UPLO == "L" else np.triu(a)
    whole = (triangle + triangle.swapaxes(-1, -2) - triangle * np.eye(n, dtype=a.dtype)).astype(np.float64)
    size = np.abs(whole).max((-2, -1), keepdims=True)
    unit = np.where(size == 0, 1, size) * n
    expected, given = np.linalg.eigvalsh(whole), np.where(np.isin(a, triangle), a, np.nan)
    for stack in orders(weft, given):
        values, vectors = weft.linalg.eigh(stack, UPLO)
        assert weft.equal(weft.linalg.eigvalsh(stack, UPLO), values)
        assert vectors.stride() == torch.linalg.eigh(torch.from_numpy(a))[1].stride()
        d, v = values.numpy().astype(np.float64), vectors.numpy().astype(np.float64)
        assert (np.abs(d - expected) <= tolerance * unit[..., 0]).all()
        assert (np.diff(d) >= 0).all()
        assert (np.abs(whole @ v - v * d[..., None, :]) <= tolerance * unit).all()
        assert (np.abs(v.swapaxes(-1, -2) @ v - np.eye(n)) <= tolerance * n).all()


@pytest.mark.parametrize("n", (*SIZES, 3, 18, 31))
@pytest.mark.parametrize(("dtype", "tolerance"), [("f", 5e-7), ("d", 1e-15)])
def test_eigenvectors(n, dtype, tolerance):
    for count, UPLO in zip(COUNTS, "LULU", strict=True):
        check_eigh(matrices((count, n, n), dtype, seed=n), tolerance, UPLO)


def with_values(values, dtype):
    """Symmetric matrices that have these eigenvalues, one set of them in each row."""
    basis = np.linalg.qr(matrices((len(values), values.shape[1], values.shape[1])))[0]
    a = (basis * values[:, None]) @ basis.swapaxes(-1, -2)
    return ((a + a.swapaxes(-1, -2)) / 2).astype(dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [("f", 5e-7), ("d", 1e-15)])
def test_eigenvectors_of_special_matrices(dtype, tolerance):
    n = 12
    ladder = np.arange(n) - 5.0
    spread = with_values(
        np.array(
            [
                np.ones(n),
                np.zeros(n),
                np.arange(n) // 4,
                np.where(ladder < 0, -1, 1),
                10.0 ** (-2 * np.arange(n)),
                1 + 1e-6 * ladder,
            ]
        ),
        dtype,
    )
    wilkinson = np.diag(np.abs(ladder)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    graded = np.diag(10.0 ** -np.arange(n)) + 1e-9 * wilkinson
    blocks = np.kron(np.eye(3), matrices((4, 4)) + matrices((4, 4)).T)
    a = np.concatenate(
        [spread, np.array([np.eye(n), np.diag(ladder), wilkinson, graded, blocks, np.ones((n, n))], dtype)]
    )
    check_eigh(a, tolerance)
    large, small = (1e30, 1e-30) if dtype == "f" else (1e300, 1e-300)
    for factor in (large, small):
        check_eigh((a * factor).astype(dtype), tolerance)
    ours = weft.linalg.eigh(weft.from_numpy(a))
    for k in range(len(a)):  # beside other matrices, the same bits
        again = weft.from_numpy(np.concatenate([a[k : k + 1], matrices((5, n, n), dtype)]))
        for one, two in zip(ours, weft.linalg.eigh(again), strict=True):
            assert (one[k].numpy().tobytes()) == (two[0].numpy().tobytes())


@pytest.mark.parametrize("dtype", "fd")
def test_bases_of_matrices_of_low_rank_are_orthogonal(dtype):
    """Rounding errors of rounding errors are subnormal numbers, which have few digits."""
    eps = np.finfo(dtype).eps
    for n in (8, 14, 16, 19, 25, 32):
        ones = weft.from_numpy(np.ones((4, n, n), dtype))
        basis, upper = weft.linalg.qr(ones)
        for each in (basis, weft.linalg.eigh(ones)[1]):
            np.testing.assert_allclose((each.mT @ each).numpy()[0], np.eye(n), atol=20 * n * eps)
        np.testing.assert_allclose((basis @ upper).numpy(), ones.numpy(), rtol=20 * n * eps)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_eigenvalues_of_numbers_that_are_not_finite(value):
    a = positive((20, 5, 5))
    a[7, 3, 1] = value
    for function in (weft.linalg.eigh, weft.linalg.eigvalsh):
        with pytest.raises(weft.linalg.LinAlgError, match="Batch element 7"):
            function(weft.from_numpy(a))
        function(weft.from_numpy(a), "U")


def test_derivatives_of_eigenvectors():
    a = positive((9, 5, 5))

    def gradient(T):
        x = T.from_numpy(a).requires_grad_()
        values, vectors = T.linalg.eigh(x)
        (values.sin().sum() + (vectors**2 * T.arange(5.0, dtype=T.float64)).sum()).backward()
        return x.grad.numpy()

    np.testing.assert_allclose(gradient(weft), gradient(torch), rtol=1e-8, atol=1e-8)
