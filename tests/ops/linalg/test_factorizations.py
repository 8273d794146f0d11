"""Factorizations: what they multiply to, their metadata and errors as in PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import BATCHES, DTYPES, both, close, definite, metadata, random
from oracle import converted, outcome, to_weft

import weft


@settings(max_examples=60, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5), st.integers(0, 5), st.booleans())
def test_svd(batch, dtype, m, n, full):
    a = random(*batch, m, n, dtype=dtype)
    (U, S, Vh), (_, values, _) = both("linalg.svd", a, full)
    k = min(m, n)
    close(S, values)
    close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], a)
    close(U.mH @ U, torch.eye(U.shape[-1], dtype=dtype).expand(*batch, -1, -1))
    close(both("linalg.svdvals", a)[0], values)


@pytest.mark.parametrize("some", (True, False))
@pytest.mark.parametrize("compute_uv", (True, False))
def test_older_svd(some, compute_uv):
    (U, S, V), (_, values, _) = both("svd", random(2, 4, 3), some, compute_uv)
    close(S, values)
    assert not compute_uv or torch.allclose((U[..., :3] * S.unsqueeze(-2)) @ V.mH, random(2, 4, 3))


@settings(max_examples=60, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5), st.integers(0, 5), st.sampled_from(("reduced", "complete", "r")))
def test_qr(batch, dtype, m, n, mode):
    a = random(*batch, m, n, dtype=dtype)
    (Q, R), (_, upper) = both("linalg.qr", a, mode)
    close(R, upper)
    if mode != "r":
        close(Q @ R, a)
        close(Q.mH @ Q, torch.eye(Q.shape[-1], dtype=dtype).expand(*batch, -1, -1))


@pytest.mark.parametrize("shape", [(70, 50), (50, 70), (2, 60, 60)])
@pytest.mark.parametrize("mode", ("reduced", "complete", "r"))
@pytest.mark.parametrize("dtype", (torch.float32, torch.complex128))
def test_qr_of_large_matrices(shape, mode, dtype):
    a = random(*shape, dtype=dtype)
    (Q, R), (_, upper) = both("linalg.qr", a, mode)
    close(R, upper)
    if mode != "r":
        close(Q @ R, a)


@settings(max_examples=30, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5), st.booleans())
def test_cholesky(batch, dtype, n, upper):
    close(*both("linalg.cholesky", definite(*batch, n, n, dtype=dtype), upper=upper))
    close(*both("cholesky", definite(*batch, n, n, dtype=dtype), upper))


def test_cholesky_ex_tells_which_minor_fails():
    a = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, -1.0, 1.0])), -torch.eye(3)])
    (_, info), (_, expected) = both("linalg.cholesky_ex", a)
    assert info.tolist() == expected.tolist() == [0, 2, 1]


@settings(max_examples=40, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5), st.integers(0, 5))
def test_lu(batch, dtype, m, n):
    a = random(*batch, m, n, dtype=dtype)
    for got, expected in zip(*both("linalg.lu", a), strict=True):
        close(got, expected)
    for got, expected in zip(*both("linalg.lu_factor_ex", a), strict=True):
        close(got, expected)


@pytest.mark.parametrize("options", [{}, {"unpack_data": False}, {"unpack_pivots": False}])
def test_lu_unpack(options):
    factors, pivots = torch.linalg.lu_factor(random(2, 4, 3))
    for got, expected in zip(*both("lu_unpack", factors, pivots, **options), strict=True):
        close(got, expected)


@pytest.mark.parametrize("hermitian", (True, False))
@pytest.mark.parametrize("dtype", (torch.float64, torch.complex64))
def test_ldl(hermitian, dtype):
    a = random(2, 4, 4, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    ours, theirs = both("linalg.ldl_factor_ex", a, hermitian=hermitian)
    for got, expected in zip(ours, theirs, strict=True):
        close(got, expected)
    b = random(2, 4, 3, dtype=dtype)
    close(*both("linalg.ldl_solve", theirs[0], theirs[1], b, hermitian=hermitian))


@settings(max_examples=30, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5))
def test_eigenvalues(batch, dtype, n):
    a = random(*batch, n, n, dtype=dtype)
    (values, vectors), (expected, _) = both("linalg.eig", a)
    close(a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
    order = [t.real * 3 + t.imag for t in (values, expected)]
    close(order[0].sort().values, order[1].sort().values)
    close((both("linalg.eigvals", a)[0].real * 1).sum(-1), expected.real.sum(-1))


@settings(max_examples=30, deadline=None)
@given(BATCHES, DTYPES, st.integers(0, 5), st.sampled_from("LUl"))
def test_eigenvalues_of_hermitian_matrices(batch, dtype, n, triangle):
    a = random(*batch, n, n, dtype=dtype)
    (values, vectors), (expected, other) = both("linalg.eigh", a, triangle)
    close(values, expected)
    close((vectors * values.unsqueeze(-2)) @ vectors.mH, (other * expected.unsqueeze(-2)) @ other.mH)
    close(*both("linalg.eigvalsh", a, triangle))


@pytest.mark.parametrize("dtype", (torch.float32, torch.complex128))
def test_householder(dtype):
    a = random(2, 5, 3, dtype=dtype)
    ours, (reflectors, tau) = both("geqrf", a)
    close(ours[0], reflectors)
    close(ours[1], tau)
    close(*both("linalg.householder_product", reflectors, tau))
    close(*both("orgqr", reflectors, tau[:, :2]))
    for left in (True, False):
        for transpose in (True, False):
            c = random(*((2, 5, 4) if left else (2, 4, 5)), dtype=dtype)
            close(*both("ormqr", reflectors, tau, c, left, transpose))


NAMES = (
    "svd svdvals qr cholesky cholesky_ex lu lu_factor lu_factor_ex ldl_factor_ex eig eigvals eigh eigvalsh det slogdet inv "
    "inv_ex matrix_exp pinv matrix_rank cond vector_norm matrix_norm norm"
).split()
INPUTS = [
    torch.ones(3, 3, dtype=torch.int64), torch.ones(3), torch.ones(2, 4, 3), torch.ones(3, 3).half(),
    torch.ones(3, 3).bfloat16(), 3.0, torch.zeros(2, 3, 3), torch.zeros(3, 3), torch.zeros(0, 3, 3),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", range(len(INPUTS)))
def test_errors(name, number):
    value = INPUTS[number]
    theirs = outcome(getattr(torch.linalg, name), (value,), {})
    ours = outcome(getattr(weft.linalg, name), (converted(value),), {})
    if isinstance(theirs, Exception):
        assert type(ours).__name__ == type(theirs).__name__
        if type(theirs).__name__ != "TypeError":
            assert str(ours).splitlines()[0] == str(theirs).splitlines()[0]
    else:
        assert not isinstance(ours, Exception), ours
        assert metadata(ours)[:2] == metadata(theirs)[:2]


def test_values_that_are_not_numbers():
    nan = torch.full((2, 3, 3), float("nan"))
    for name in ("svd", "cholesky"):
        with pytest.raises(weft.linalg.LinAlgError) as ours:
            getattr(weft.linalg, name)(to_weft(nan))
        with pytest.raises(torch.linalg.LinAlgError) as theirs:
            getattr(torch.linalg, name)(nan)
        assert str(ours.value) == str(theirs.value)
    with pytest.raises(RuntimeError, match="input tensor should not contain infs or NaNs"):
        weft.linalg.eig(to_weft(nan))


def test_named_results_print_as_those_of_torch():
    a = torch.tensor([[2.0, 0.0], [0.0, 3.0]])
    for name in ("slogdet", "linalg.slogdet", "linalg.inv_ex", "linalg.lu_factor", "linalg.cholesky_ex"):
        theirs, ours = torch, weft
        for part in name.split("."):
            theirs, ours = getattr(theirs, part), getattr(ours, part)
        assert repr(ours(to_weft(a))) == repr(theirs(a))


@pytest.mark.parametrize("name", ("eig", "symeig", "lstsq", "solve", "matrix_rank"))
def test_removed_functions_say_so(name):
    with pytest.raises(RuntimeError) as theirs:
        getattr(torch, name)(torch.eye(2), torch.eye(2)) if name in ("lstsq", "solve") else getattr(
            torch, name
        )(torch.eye(2))
    with pytest.raises(RuntimeError) as ours:
        getattr(weft, name)(weft.eye(2))
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


UNFIT = """
torch.cholesky(torch.eye(2, dtype=torch.int64))  # raises
torch.linalg.cholesky(torch.eye(2, dtype=torch.int64))  # raises
torch.cholesky(torch.eye(2))
torch.ormqr(torch.ones(3, 2), torch.tensor(1.0), torch.ones(3, 2))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
