"""LAPACK on the memory of tensors: the results, strides and errors of PyTorch, from any memory order, in any stack."""

import operator

import numpy as np
import pytest
import torch

import weft
from weft.ops.linalg import eigen, equations, factorizations, linalg, native

DTYPES = ("f4", "f8", "c8", "c16")
SHAPES = ((1, 1), (2, 42, 42), (7, 4), (4, 7))


def matrices(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if dtype[0] == "c" else a).astype(dtype)


def regular(a):
    """Well-conditioned matrices that are not symmetric."""
    return (a + 3 * a.shape[-1] ** 0.5 * np.eye(a.shape[-1])).astype(a.dtype)


def positive(a):
    return (a @ a.conj().swapaxes(-1, -2) / a.shape[-1] + 2 * np.eye(a.shape[-1])).astype(a.dtype)


def orders(T, a):
    """Equal tensors in rows, in columns, as a part of a larger one, and with a pending conjugation."""
    whole = T.from_numpy(a)
    yield whole
    yield whole.mT.contiguous().mT
    yield T.stack((whole, whole), -1)[..., 0]
    if a.dtype.kind == "c":
        yield whole.conj().resolve_conj().conj()


def compare(function, *arrays):
    tolerance = 1e-3 if arrays[0].dtype.char in "fF" else 1e-9
    expected = function(torch, *map(torch.from_numpy, arrays))
    for a in orders(weft, arrays[0]):
        found = function(weft, a, *map(weft.from_numpy, arrays[1:]))
        for theirs, ours in zip(expected, found, strict=True):
            assert ours.stride() == theirs.stride()
            assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            np.testing.assert_allclose(
                ours.resolve_conj().numpy(), theirs.resolve_conj().numpy(), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_any_matrix(dtype, shape):
    a = matrices(shape, dtype)
    compare(lambda T, a: T.linalg.lu_factor_ex(a), a)
    compare(lambda T, a: [T.linalg.svdvals(a), T.linalg.svd(a)[1]], a)
    for full in (False, True):
        compare(lambda T, a: [x for x in T.linalg.svd(a, full) if x.dim() == 0] + [product(T, a, full)], a)  # noqa: B023
    for mode in ("reduced", "complete", "r"):
        Q, R = weft.linalg.qr(weft.from_numpy(a), mode)
        theirs = torch.linalg.qr(torch.from_numpy(a), mode)
        assert (Q.shape, R.shape, Q.stride(), R.stride()) == (
            *[tuple(x.shape) for x in theirs],
            *[x.stride() for x in theirs],
        )
        assert not R.tril(-1).any()
        if mode != "r":
            np.testing.assert_allclose((Q @ R).numpy(), a, rtol=1e-3, atol=1e-4)
            unit = (Q.mH @ Q).resolve_conj().numpy()
            np.testing.assert_allclose(unit, np.broadcast_to(np.eye(Q.shape[-1]), unit.shape), atol=1e-4)


def product(T, a, full):
    U, S, Vh = T.linalg.svd(a, full)
    k = S.shape[-1]
    return (U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[-1] == shape[-2]], ids=str)
def test_of_square_matrices(dtype, shape):
    a = matrices(shape, dtype)
    b = matrices((*shape[:-1], 3), dtype, seed=1)
    compare(lambda T, a, b: [*T.linalg.solve_ex(a, b), *T.linalg.inv_ex(a)], regular(a), b)
    compare(
        lambda T, a, b: [T.linalg.solve(a, b[..., 0]), T.linalg.solve(a, b.mT, left=False)], regular(a), b
    )
    compare(lambda T, a: [*T.linalg.cholesky_ex(a), *T.linalg.cholesky_ex(a, upper=True)], positive(a))
    for UPLO in ("L", "U"):
        compare(lambda T, a: [T.linalg.eigvalsh(a, UPLO), T.linalg.eigh(a, UPLO)[0]], a)  # noqa: B023
        compare(lambda T, a: [restored(T, *T.linalg.eigh(a, UPLO))], positive(a))  # noqa: B023
    for adjoint in (False, True):
        compare(
            lambda T, a, b: [T.linalg.lu_solve(*T.linalg.lu_factor(a), b, adjoint=adjoint)],  # noqa: B023
            regular(a),
            b,
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ((1, 1), (3, 20, 20)), ids=str)
def test_from_factors(dtype, shape):
    a, b = positive(matrices(shape, dtype)), matrices((*shape[:-1], 3), dtype, seed=1)
    for upper in (False, True):
        compare(lambda T, a, b: [T.cholesky_solve(b, T.linalg.cholesky(a, upper=upper), upper)], a, b)  # noqa: B023
        compare(lambda T, a: [T.cholesky_inverse(T.linalg.cholesky(a, upper=upper), upper)], a)  # noqa: B023
    a = matrices(shape, dtype)
    compare(lambda T, a: [T.linalg.det(a), *T.linalg.slogdet(a), *T.linalg.lu(a)], a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ((1, 1), (3, 20, 20)), ids=str)
def test_eigenvalues(dtype, shape):
    a = matrices(shape, dtype)
    values, vectors = weft.linalg.eig(weft.from_numpy(a))
    theirs = torch.linalg.eig(torch.from_numpy(a))
    assert [x.stride() for x in (values, vectors)] == [x.stride() for x in theirs]
    np.testing.assert_allclose(
        (vectors.mH @ vectors).diagonal(0, -2, -1).resolve_conj().numpy(), 1, rtol=1e-4
    )
    np.testing.assert_allclose(
        (weft.from_numpy(a.astype(values.numpy().dtype)) @ vectors).numpy(),
        (vectors * values.unsqueeze(-2)).numpy(),
        atol=1e-4,
    )
    alone = weft.linalg.eigvals(weft.from_numpy(a)).numpy()
    np.testing.assert_allclose(
        np.sort_complex(alone), np.sort_complex(theirs[0].numpy()), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [native.LEAST_IN_STEPS, native.LEAST_IN_STEPS + 5])
def test_eigenvectors_in_steps(dtype, n):
    a = positive(matrices((n, n), dtype))
    for UPLO, other in (("L", np.triu), ("U", np.tril)):
        given = a + 7 * other(a, 1 if UPLO == "L" else -1)  # the other triangle is not read
        compare(lambda T, a: [T.linalg.eigh(a, UPLO)[0]], given)  # noqa: B023
        compare(lambda T, a: [restored(T, *T.linalg.eigh(a, UPLO))], given)  # noqa: B023
    for scale in (1e30, 1e-30):
        values, vectors = weft.linalg.eigh(weft.from_numpy(a * np.asarray(scale, dtype)))
        assert vectors.stride() == (1, n)
        np.testing.assert_allclose(values.numpy() / scale, np.linalg.eigvalsh(a), rtol=1e-3)
    x = weft.from_numpy(a)
    before = weft.get_num_threads()
    found = []
    for threads in (1, 2):
        weft.set_num_threads(threads)
        found.append(weft.linalg.eigh(x))
    weft.set_num_threads(before)
    assert all(weft.equal(one, two) for one, two in zip(*found, strict=True))
    values, vectors = weft.linalg.eigh(weft._neg_view(x))
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(-a), rtol=1e-3)
    assert not weft.linalg.eigh(weft.zeros(n, n))[0].any()
    x[3, 3] = float("nan")
    with pytest.raises(weft.linalg.LinAlgError):
        weft.linalg.eigh(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ((5, 3), (3, 20, 20)), ids=str)
def test_least_squares(dtype, shape):
    a, b = matrices(shape, dtype), matrices((*shape[:-1], 3), dtype, seed=1)
    compare(lambda T, a, b: T.linalg.lstsq(a, b), a, b)


def test_least_squares_of_matrices_without_full_rank():
    """Compared with NumPy, because PyTorch leaves gelsy an array of column numbers that it does not clear."""
    a, b = matrices((3, 33, 21), "f8"), matrices((3, 33, 3), "f8", seed=1)
    a[..., -1] = a[..., 0]
    solution, _, rank, _ = weft.linalg.lstsq(weft.from_numpy(a), weft.from_numpy(b))
    assert rank.tolist() == [20, 20, 20]
    for k in range(3):
        np.testing.assert_allclose(solution[k].numpy(), np.linalg.lstsq(a[k], b[k])[0], atol=1e-12)


def restored(T, values, vectors):
    return (vectors * values.unsqueeze(-2)) @ vectors.mH


@pytest.mark.parametrize("dtype", ("f4", "c16"))
@pytest.mark.parametrize("shape", ((5, 5), (3, 20, 20)), ids=str)
@pytest.mark.parametrize("upper", (False, True))
@pytest.mark.parametrize("unitriangular", (False, True))
def test_triangles(dtype, shape, upper, unitriangular):
    a, b = regular(matrices(shape, dtype)), matrices((*shape[:-1], 3), dtype, seed=1)
    a /= 10 * shape[-1] ** 0.5 if unitriangular else 1
    options = {"upper": upper, "unitriangular": unitriangular}
    compare(lambda T, a, b: [T.linalg.solve_triangular(a, b, **options)], a, b)
    compare(lambda T, a, b: [T.linalg.solve_triangular(a.mT, b, **options)], a, b)
    found = weft.linalg.solve_triangular(
        weft.from_numpy(a), weft.from_numpy(b).mT, left=False, **options
    ).numpy()
    expected = torch.linalg.solve_triangular(
        torch.from_numpy(a), torch.from_numpy(b).mT, left=False, **options
    )
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-3)


def test_stacks_broadcast():
    a, b = regular(matrices((6, 20, 20), "f8")), matrices((6, 20, 4), "f8")
    compare(lambda T, a, b: [T.linalg.solve(a[0], b), T.linalg.solve(a, b[0])], a, b)
    compare(lambda T, a, b: [T.linalg.solve(a[:1].expand(6, 20, 20), b)], a, b)
    compare(lambda T, a, b: [T.linalg.solve_triangular(a[0], b, upper=True)], a, b)
    compare(lambda T, a, b: [T.linalg.solve_triangular(a, b[0], upper=True)], a, b)


def test_values_without_a_result():
    a = matrices((4, 40, 40), "f8")
    a[1] = positive(a[1])
    singular = a.copy()
    singular[2, :, 7] = 0
    compare(lambda T, a: [T.linalg.solve_ex(a, a)[1], T.linalg.lu_factor_ex(a)[2]], singular)
    with pytest.raises(weft.linalg.LinAlgError, match=r"\(Batch element 2\)"):
        weft.linalg.inv(weft.from_numpy(singular))
    spoiled = positive(a)
    spoiled[2, 5, 5] = np.nan
    compare(lambda T, a: [T.linalg.cholesky_ex(a)[1]], spoiled)
    with pytest.raises(weft.linalg.LinAlgError, match=r"\(Batch element 2\)"):
        weft.linalg.svd(weft.from_numpy(spoiled))


def test_small_inverses_print_as_those_of_torch():
    a = np.diag([2.0, -3.0, 4.0])
    assert repr(weft.linalg.inv(weft.from_numpy(a))) == repr(torch.linalg.inv(torch.from_numpy(a)))


def test_numpy_without_openblas(monkeypatch):
    """The ops then compute on arrays, with the same strides."""
    ops = (
        factorizations._linalg_cholesky_ex, factorizations._linalg_lu_factor_ex, factorizations._linalg_qr,
        equations._solve, equations._linalg_solve_triangular, equations._lu_solve, linalg._linalg_inv_ex,
        eigen._linalg_eigh, eigen._eigvalsh, eigen._linalg_svd, eigen._svdvals,
    )  # fmt: skip
    for op in ops:
        op.plans.clear()
    with monkeypatch.context() as patch:
        patch.setattr("weft.engine.blas.numpy_library", lambda: None)
        try:
            test_of_square_matrices("f8", (2, 42, 42))
            test_of_any_matrix("f4", (7, 4))
        finally:
            for op in ops:
                op.plans.clear()


@pytest.mark.parametrize("name", ["cholesky_solve", "linalg.solve_triangular"])
def test_the_copy_of_an_operand_lives_until_it_is_read(name):
    b, a = matrices((1, 1), "c8", 1), positive(matrices((1, 1), "c8"))
    operands = (b, a) if name == "cholesky_solve" else (a, b)
    ours, theirs = (operator.attrgetter(name)(T) for T in (weft, torch))
    expected = theirs(*(torch.from_numpy(x).conj() for x in operands), upper=False).resolve_conj().numpy()
    for _ in range(20):
        result = ours(*(weft.from_numpy(x).conj() for x in operands), upper=False)
        np.testing.assert_allclose(result.resolve_conj().numpy(), expected, rtol=1e-5)
