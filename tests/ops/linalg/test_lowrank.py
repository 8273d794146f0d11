"""Partial factorizations against full ones and PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import close, definite, random
from oracle import to_torch, to_weft

import weft


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([(8, 5), (5, 8), (2, 6, 6)]),
    st.sampled_from([torch.float64, torch.complex64]),
)
def test_svd_of_low_rank(q, shape, dtype):
    a = random(*shape[:-1], q, dtype=dtype) @ random(*shape[:-2], q, shape[-1], dtype=dtype)
    for function in (weft.svd_lowrank, lambda a, q: weft.pca_lowrank(a, q, center=False)):
        U, S, V = (to_torch(t.resolve_conj()) for t in function(to_weft(a), q))
        close((U * S.unsqueeze(-2)) @ V.mH, a)


def test_some_eigenvalues_of_a_generalized_problem():
    a, b = definite(9, 9), definite(9, 9) + 3 * torch.eye(9)
    for largest in (True, False):
        values, vectors = weft.lobpcg(to_weft(a), 2, to_weft(b), largest=largest)
        expected, _ = torch.lobpcg(a, 2, b, largest=largest, niter=200, tol=1e-12)
        close(to_torch(values), expected)
        x = to_torch(vectors)
        close(a @ x, b @ x * to_torch(values))
    with pytest.raises(ValueError):
        weft.lobpcg(weft.eye(5), 2)


def test_both_triangles_count():
    assert weft.autograd.gradcheck(lambda a: weft.lobpcg(a, 2)[0], to_weft(definite(6, 6)).requires_grad_())


UNFIT = """
torch.linalg.lstsq(torch.eye(3).expand(3, 1, 3, 3), torch.ones(2, 3, 3))  # raises
torch.linalg.lstsq(torch.eye(3), torch.ones(2, 3, 3))  # raises
torch.linalg.lstsq(torch.eye(3).expand(4, 3, 3), torch.ones(3))  # raises
torch.linalg.lstsq(torch.eye(3).expand(4, 3, 3), torch.ones(0))  # raises
torch.linalg.lstsq(torch.eye(3).expand(2, 3, 3), torch.ones(3, 2))  # raises
torch.linalg.lstsq(torch.eye(3).expand(3, 3, 3), torch.ones(3, 2)).solution
torch.linalg.lstsq(torch.eye(3).expand(2, 3, 3), torch.ones(2, 3)).solution
torch.linalg.lstsq(torch.ones(2, 3), torch.ones(0))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
