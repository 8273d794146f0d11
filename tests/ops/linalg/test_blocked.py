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
    a, before, found = weft.randn(300, 261), weft.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            found.append(weft.linalg.qr(a))
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
