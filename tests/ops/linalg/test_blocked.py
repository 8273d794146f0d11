"""Single matrices that are factorized in blocks: PyTorch's results at any shape and order, the same bits on any number of threads."""

import numpy as np
import pytest
import torch

import weft


def matrices(*shape, dtype="d", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def orders(a):
    """Equal tensors in rows, in columns, as a part of a larger one, and with a pending negation."""
    whole = weft.from_numpy(a)
    yield whole
    yield whole.mT.contiguous().mT
    yield weft.stack((whole, whole), -1)[..., 1]
    yield weft._neg_view(-whole)


@pytest.mark.parametrize("shape", [(192, 192), (193, 193), (300, 201), (200, 301)], ids=str)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr(shape, mode):
    a = matrices(*shape)
    theirs = torch.linalg.qr(torch.from_numpy(a), mode)
    for given in orders(a):
        for found, expected in zip(weft.linalg.qr(given, mode), theirs, strict=True):
            assert found.shape == tuple(expected.shape)
            assert found.stride() == expected.stride()
            np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-11)
    Q, R = weft.linalg.qr(weft.from_numpy(a.astype("f")), mode)
    np.testing.assert_allclose(R.numpy(), theirs[1].numpy(), atol=1e-3)
    if mode != "r":
        np.testing.assert_allclose((Q @ R).numpy(), a, atol=1e-4)
        np.testing.assert_allclose((Q.mT @ Q).numpy(), np.eye(Q.shape[1]), atol=1e-5)


def test_qr_of_columns_that_are_clear():
    a = matrices(220, 200)
    a[:, 70:140] = 0
    a[:, 150] = a[:, 3]
    for given in (a, np.zeros_like(a), np.eye(220, 200), a * 1e200, a * 1e-200):
        Q, R = weft.linalg.qr(weft.from_numpy(given))
        size = np.abs(given).max()
        assert (np.abs((Q @ R).numpy() - given) <= 1e-13 * size).all()
        np.testing.assert_allclose((Q.mT @ Q).numpy(), np.eye(200), atol=1e-13)
        assert (np.tril(R.numpy(), -1) == 0).all()


def test_qr_of_numbers_that_are_not_finite():
    a = weft.randn(200, 200)
    a[100, 100] = float("nan")
    assert not weft.linalg.qr(a)[1].isfinite().all()


def test_the_same_bits_on_any_number_of_threads():
    a, s = weft.randn(400, 261), weft.randn(400, 400)
    before, found = weft.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            found.append([*weft.linalg.qr(a), weft.linalg.solve(s, a[:, :9])])
    finally:
        weft.set_num_threads(before)
    for one, two, three in zip(*found, strict=True):
        assert weft.equal(one, two)
        assert weft.equal(one, three)


def test_derivative_of_qr():
    a = matrices(200, 200)

    def gradient(T):
        x = T.from_numpy(a).requires_grad_()
        Q, R = T.linalg.qr(x)
        (Q.sin() * R).sum().backward()
        return x.grad.numpy()

    expected = gradient(torch)
    np.testing.assert_allclose(gradient(weft), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("n", [192, 383, 384, 401])
@pytest.mark.parametrize("count", [1, 7, 60])
def test_solve(n, count):
    a, b = matrices(n, n), matrices(n, count, seed=1)
    theirs = torch.linalg.solve_ex(torch.from_numpy(a), torch.from_numpy(b))
    for given, right in zip(orders(a), orders(b), strict=True):
        ours = weft.linalg.solve_ex(given, right)
        for found, expected in zip(ours, theirs, strict=True):
            assert found.stride() == expected.stride()
            assert found.dtype.itemsize == expected.dtype.itemsize
            np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-8, atol=1e-9)
    x = weft.linalg.solve(
        weft.from_numpy(a.astype("f") + 30 * np.eye(n, dtype="f")), weft.from_numpy(b.astype("f"))
    )
    np.testing.assert_allclose((a + 30 * np.eye(n)) @ x.numpy(), b, atol=1e-3)
    left = weft.linalg.solve(weft.from_numpy(a), weft.from_numpy(b.T.copy()), left=False)
    np.testing.assert_allclose(left.numpy() @ a, b.T, atol=1e-9)


@pytest.mark.parametrize("n", [200, 400])
def test_solve_of_singular_matrices_and_numbers_that_are_not_finite(n):
    a, b = matrices(n, n), matrices(n, 3, seed=1)
    for column in (0, n - 1):
        singular = a.copy()
        singular[:, column] = 0
        expected = torch.linalg.solve_ex(torch.from_numpy(singular), torch.from_numpy(b))[1]
        assert (
            weft.linalg.solve_ex(weft.from_numpy(singular), weft.from_numpy(b))[1].item() == expected.item()
        )
        with pytest.raises(weft.linalg.LinAlgError, match=f"U\\[{column + 1},{column + 1}\\]|singular"):
            weft.linalg.solve(weft.from_numpy(singular), weft.from_numpy(b))
    spoiled = a.copy()
    spoiled[5, 5] = np.nan
    assert not weft.linalg.solve_ex(weft.from_numpy(spoiled), weft.from_numpy(b))[0].isfinite().all()
    b[4, 1] = np.inf
    columns = weft.linalg.solve(weft.from_numpy(a), weft.from_numpy(b)).isfinite().all(0)
    assert columns.tolist() == [True, False, True]


def test_wide_updates_are_cut_into_more_parts():
    a, b = matrices(384, 384), matrices(384, 2000, seed=1)
    found = weft.linalg.solve(weft.from_numpy(a), weft.from_numpy(b))
    np.testing.assert_allclose(a @ found.numpy(), b, atol=1e-9)
    a = matrices(192, 1500)
    Q, R = weft.linalg.qr(weft.from_numpy(a))
    np.testing.assert_allclose((Q @ R).numpy(), a, atol=1e-11)
