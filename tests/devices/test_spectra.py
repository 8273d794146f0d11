"""Eigenvalues and singular values of a device have the properties that define them, and what is made of them gives what the CPU gives.

The device is the reference device, or the one that TESTED_DEVICE names. If that has kernels for matrices, nothing is computed on the host.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_device import HERE, refuse_matrices_of_the_host

import weft as torch

ALL = [torch.float32, torch.float64, torch.complex64, torch.complex128]
SMALL = [(1, 1), (5, 5), (2, 3, 30, 30), (7, 3), (3, 7), (2, 100, 20)]


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def on_the_device(monkeypatch):
    refuse_matrices_of_the_host(monkeypatch)


def assert_alike(a, b, scale):
    """Some roundings of numbers of this size are allowed for each of the numbers of a row or column."""
    assert a.shape == b.shape
    eps = torch.finfo(b.dtype).eps
    size = max(b.shape[-2:]) if b.dim() > 1 else b.numel()
    atol = 4 * max(size, 10) * eps * max(scale, 1e-300)
    torch.testing.assert_close(a.cpu(), b, rtol=0, atol=atol, check_dtype=False)


def identity(like):
    return torch.eye(like.shape[-1], dtype=like.dtype).expand(like.shape)


def check_eigh(a, UPLO="L"):
    """A = V diag(w) V.mH with orthonormal V, and the values are LAPACK's."""
    half = a.tril(-1) if UPLO == "L" else a.triu(1)
    diagonal = a.diagonal(0, -2, -1)
    whole = half + half.mH + (diagonal.real if a.is_complex() else diagonal).diag_embed()
    expected = torch.linalg.eigvalsh(a, UPLO)
    scale = expected.abs().max().item()
    w, V = (each.cpu() for each in torch.linalg.eigh(a.to(HERE), UPLO))
    assert (w.diff() >= 0).all()
    assert_alike(w, expected, scale)
    assert_alike(torch.linalg.eigvalsh(a.to(HERE), UPLO), w, scale)
    assert_alike(V.mH @ V, identity(V), 1)
    assert_alike((V * w.unsqueeze(-2)) @ V.mH, whole, scale)


def check_svd(a):
    """A = U diag(S) Vh with orthonormal columns of U and rows of Vh, and the values are LAPACK's."""
    expected, k = torch.linalg.svdvals(a), min(a.shape[-2:])
    scale = expected.max().item()
    for full in (True, False):
        U, S, Vh = (each.cpu() for each in torch.linalg.svd(a.to(HERE), full))
        wanted = torch.linalg.svd(a, full)
        assert [(each.shape, each.stride()) for each in wanted] == [
            (each.shape, each.stride()) for each in (U, S, Vh)
        ]
        assert (S.diff() <= 0).all() and (S >= 0).all()
        assert_alike(S, expected, scale)
        assert_alike(U.mH @ U, identity(U.mH @ U), 1)
        assert_alike(Vh @ Vh.mH, identity(Vh @ Vh.mH), 1)
        assert_alike((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a, scale)
    assert_alike(torch.linalg.svdvals(a.to(HERE)), expected, scale)


@pytest.mark.parametrize("shape", SMALL)
@pytest.mark.parametrize("dtype", ALL)
def test_definitions(shape, dtype, on_the_device):
    a = torch.randn(*shape, dtype=dtype)
    if shape[-2] == shape[-1]:
        check_eigh(a, "L" if shape[-1] % 2 else "U")
    check_svd(a)


@pytest.mark.parametrize(("dtype", "n"), [(torch.float32, 66), (torch.complex128, 34)])
def test_definitions_in_blocks(dtype, n, on_the_device):
    check_eigh(torch.randn(8, n, n, dtype=dtype))
    check_svd(torch.randn(8, n + 6, n, dtype=dtype))


def special_matrices(n, dtype):
    """Matrices with repeated eigenvalues, without full rank, and those that are diagonal already."""
    ones, noise = torch.ones(n, n, dtype=dtype), torch.randn(n, n, dtype=dtype)
    basis = torch.linalg.qr(noise).Q
    signs = torch.ones(n, dtype=dtype)
    signs[::2] = -1
    graded = torch.logspace(0, -30, n, dtype=torch.float64).to(dtype)
    return {
        "zeros": ones * 0,
        "ones": ones,
        "the identity": torch.eye(n, dtype=dtype),
        "orthogonal": basis,
        "plus and minus one": (basis * signs) @ basis.mH,
        "a diagonal": graded.diag(),
        "no full rank": noise[:, :2] @ noise[:, :2].mH,
        "a swap": torch.eye(n, dtype=dtype).flip(0),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
@pytest.mark.parametrize("n", [2, 30])
def test_special_matrices(n, dtype, on_the_device):
    for a in special_matrices(n, dtype).values():
        check_eigh(a)
        check_svd(a)


def test_special_matrices_in_blocks(on_the_device):
    stack = torch.stack(tuple(special_matrices(70, torch.float32).values()))
    assert len(stack) == 8
    check_eigh(stack)
    check_svd(stack)


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e30])
def test_extreme_numbers(scale, on_the_device):
    a = torch.randn(20, 20)
    for function in (torch.linalg.svdvals, lambda a: torch.linalg.eigvalsh(a + a.mT)):
        torch.testing.assert_close(
            function((a * scale).to(HERE)).cpu() / scale, function(a), rtol=1e-4, atol=1e-4
        )


@given(m=st.integers(0, 12), n=st.integers(0, 12), step=st.sampled_from([1, 2, -1]), turned=st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_strides(m, n, step, turned):
    a = torch.randn(m, n, dtype=torch.complex128)
    there = a.to(HERE)
    a, there = ((each.flip(0) if step < 0 else each[::step]) for each in (a, there))
    a, there = ((each.mH if turned else each) for each in (a, there))
    assert_alike(torch.linalg.svdvals(there), torch.linalg.svdvals(a), 10)
    U, S, Vh = torch.linalg.svd(there, full_matrices=False)
    assert_alike((U * S.unsqueeze(-2)) @ Vh, a, 10)


def test_the_other_triangle_may_hold_anything(on_the_device):
    a = torch.randn(6, 6)
    spoiled = a.clone()
    spoiled[0, 5] = float("nan")
    check = torch.linalg.eigvalsh(spoiled.to(HERE))
    assert_alike(check, torch.linalg.eigvalsh(a), 10)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite(value):
    a = torch.randn(3, 6, 6)
    a[1, 4, 2] = value
    for function in (torch.linalg.eigh, torch.linalg.eigvalsh, torch.linalg.svd):
        with pytest.raises(torch.linalg.LinAlgError, match="Batch element 1"):
            function(a.to(HERE))
    if value == float("inf"):
        assert torch.linalg.svdvals(a.to(HERE)).isnan().any(-1).tolist() == [False, True, False]


def test_what_is_made_of_them(on_the_device):
    a = torch.randn(3, 20, 12) @ torch.randn(12, 12)
    poor = torch.randn(20, 3) @ torch.randn(3, 12)
    square = torch.randn(9, 9)
    for function, argument in (
        (torch.linalg.pinv, a),
        (torch.linalg.pinv, poor),
        (lambda a: torch.linalg.pinv(a + a.mT, hermitian=True), square),
        (torch.linalg.cond, a),
        (lambda a: torch.linalg.matrix_norm(a, "nuc"), a),
        (lambda a: torch.linalg.matrix_norm(a, 2), a),
    ):
        expected = function(argument)
        torch.testing.assert_close(function(argument.to(HERE)).cpu(), expected, rtol=1e-3, atol=1e-4)
    assert torch.linalg.matrix_rank(torch.stack((a[0], poor)).to(HERE)).tolist() == [12, 3]
    assert torch.linalg.matrix_rank((poor @ poor.mT).to(HERE), hermitian=True).item() == 3


@pytest.mark.parametrize(
    "function",
    [
        torch.linalg.svdvals,
        torch.linalg.eigvalsh,
        lambda a: torch.linalg.eigh(a)[1].abs(),
        lambda a: torch.linalg.svd(a, full_matrices=False)[0].abs(),
        torch.linalg.pinv,
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_gradients(function, dtype):
    a = torch.randn(2, 2, dtype=dtype).to(HERE).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: function(a + a.mH), (a,))
