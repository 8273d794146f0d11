"""Distances and angles against PyTorch."""

import math

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import close, random
from oracle import check, to_torch, to_weft

import weft


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from((0.0, 1.0, 2.0, 3.0, math.inf)),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from((0, 1, 3, 8, 9, 20)),
    st.sampled_from([((), ()), ((2,), (2,)), ((2, 1), (3,)), ((), (2,))]),
    st.booleans(),
)
def test_cdist(p, n, m, d, batches, transposed):
    a, b = random(*batches[0], n, d), random(*batches[1], m, d, seed=1)
    if transposed:
        a = a.mT.contiguous().mT
    check("cdist", a, b, p, "donot_use_mm_for_euclid_dist")


@pytest.mark.parametrize("d", (3, 40))
@pytest.mark.parametrize(
    "mode", ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
)
def test_cdist_of_many_vectors(d, mode):
    a, b = random(2, 40, d), random(30, d, seed=1)
    close(to_torch(weft.cdist(to_weft(a), to_weft(b), 2.0, mode)), torch.cdist(a, b, 2.0, mode))


def test_cdist_of_a_vector_and_itself_is_exactly_zero():
    a = weft.rand(30, 3)
    assert weft.cdist(a, a).diagonal().count_nonzero().item() == 0


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "arguments",
    [
        (torch.ones(3), torch.ones(2, 3)),
        (torch.ones(2, 3), torch.ones(2, 4)),
        (torch.ones(2, 3).long(),) * 2,
        (torch.ones(2, 3), torch.ones(2, 3), -1.0),
        (torch.ones(2, 3), torch.ones(2, 3), 2.0, "what"),
        (torch.ones(2, 3), torch.ones(2, 3).double()),
    ],
)
def test_cdist_errors(arguments):
    check("cdist", *arguments)


@pytest.mark.parametrize("p", (0.0, 1.0, 2.0, 2.5, math.inf))
def test_distances_of_pairs(p):
    check("nn.functional.pdist", random(5, 3), p)
    check("nn.functional.pdist", random(1, 3), p)
    check("nn.functional.pairwise_distance", random(4, 3), random(3, seed=1), p)
    check("nn.functional.pairwise_distance", random(4, 3), random(3, seed=1), p, keepdim=True)


@pytest.mark.refuses(1)
@pytest.mark.parametrize("dim", (0, 1, -1))
def test_cosine_similarity(dim):
    check("nn.functional.cosine_similarity", random(4, 3), random(4, 3, seed=1), dim)
    check("nn.functional.cosine_similarity", random(4, 3).bfloat16(), random(4, 3, seed=1).bfloat16(), dim)
    check("nn.functional.cosine_similarity", random(4, 3), torch.zeros(3), dim)
    check("nn.functional.cosine_similarity", torch.ones(4, 3).long(), torch.ones(3).long(), dim)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
def test_second_derivatives_at_equal_vectors_are_finite(p):
    x = weft.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 5.0]], dtype=weft.float64, requires_grad=True)
    for distances in (weft.cdist(x, x, p), weft.pdist(x, p)):
        (slope,) = weft.autograd.grad(distances.sum(), x, create_graph=True)
        (curvature,) = weft.autograd.grad((slope * weft.arange(6).view(3, 2)).sum(), x, allow_unused=True)
        assert curvature is None or curvature.isfinite().all()


def test_curvature_of_distances_counts_equal_vectors_as_nothing():
    x = weft.tensor([[1.0, 2.0], [1.0, 2.0], [3.0, 5.0]], dtype=weft.float64, requires_grad=True)
    found = []
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        (slope,) = weft.autograd.grad(weft.cdist(x, x, compute_mode=mode).sum(), x, create_graph=True)
        found += weft.autograd.grad((slope * weft.arange(6).view(3, 2)).sum(), x)
    weft.testing.assert_close(*found)


@pytest.mark.parametrize("first", ("int64", "bfloat16", "float32", "float64"))
@pytest.mark.parametrize("second", ("bfloat16", "float32", "float64"))
def test_cosine_similarity_of_two_dtypes(first, second):
    a, b = torch.tensor([[2.0, -1.0], [3.0, 5.0]]), torch.tensor([[1.0, 7.0], [3.0, 2.0]])
    theirs, mine = (
        library.cosine_similarity(
            *(library.tensor(x.tolist(), dtype=getattr(library, d)) for x, d in ((a, first), (b, second))),
            dim=0,
        )
        for library in (torch, weft)
    )
    assert str(theirs.dtype) == str(mine.dtype)
    # The lengths of narrow floats are rounded, which shows in the wide result.
    np.testing.assert_allclose(mine.double().numpy(), theirs.double().numpy(), rtol=1e-6)


def test_cosine_similarity_of_a_vector_and_a_number_of_a_wider_dtype():
    theirs, mine = (
        library.cosine_similarity(library.ones(3, 2), library.tensor(2.0, dtype=library.float64), 0)
        for library in (torch, weft)
    )
    assert str(theirs.dtype) == str(mine.dtype)


UNFIT = """
torch.cosine_similarity(torch.ones(2, 2), torch.ones(2, 2), eps=nan)  # raises
torch.cosine_similarity(torch.ones(2, 2), torch.ones(2, 2), eps=-1.0)  # raises
torch.nn.functional.pdist(torch.ones(3, 2), nan)  # raises
torch.cdist(torch.ones(2, 2), torch.ones(2, 2), compute_mode=1)  # raises
torch.cdist(torch.ones(2, 2), torch.ones(2, 2), nan)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize("p", [0.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("shape", [(2, 3, 40), (16, 16)])
def test_few_long_vectors(p, shape):
    torch.manual_seed(1)
    x = torch.randn(*shape, dtype=torch.float64)
    check("cdist", x, x[..., :1, :].flip(-1), p, "donot_use_mm_for_euclid_dist")
    if len(shape) == 2:
        check("nn.functional.pdist", x, p)
