"""Norms, distances, linear maps and trapezoids against PyTorch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import close, random
from oracle import check, to_torch, to_weft

import weft

INF = math.inf
ORDERS = st.sampled_from((0, 1, 2, 3, 0.5, -1, -2.5, INF, -INF))
FLOATS = st.sampled_from((torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64))


@settings(max_examples=150, deadline=None)
@given(
    ORDERS,
    FLOATS,
    st.sampled_from((None, 0, 1, -1, (0, 1), (0, 1, 2))),
    st.booleans(),
    st.sampled_from([(3, 4, 2), (3, 0, 2)]),
)
def test_vector_norms(order, dtype, dim, keepdim, shape):
    check("linalg.vector_norm", random(*shape).to(dtype), order, dim, keepdim)
    check("norm", random(*shape).to(dtype), order, dim, keepdim)


@pytest.mark.parametrize("dtype", (torch.float64, torch.float32, torch.float16, torch.complex64, torch.int64))
def test_norms_in_another_dtype(dtype):
    for input in (
        random(3, 4).float(),
        random(3, 4).half(),
        torch.ones(2, 2).long(),
        random(3).to(torch.complex64),
    ):
        check("linalg.vector_norm", input, dtype=dtype)
        check("linalg.matrix_norm", input, dtype=dtype)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(("fro", "nuc", 1, -1, 2, -2, INF, -INF)),
    st.sampled_from([(-2, -1), (0, 1), (2, 0)]),
    st.booleans(),
)
def test_matrix_norms(order, dim, keepdim):
    check("linalg.matrix_norm", random(3, 4, 2), order, dim, keepdim)
    check("linalg.norm", random(3, 4, 2), order, dim, keepdim)
    check("norm", random(3, 4, 2), order, dim, keepdim)


@pytest.mark.parametrize("order", (None, "fro", "nuc", 1, 2, -2, INF, 0, 3, "what"))
def test_norm_chooses_between_vectors_and_matrices(order):
    for shape in ((4,), (3, 4), (2, 3, 4), ()):
        check("linalg.norm", random(*shape), order)
        check("norm", random(*shape), order)
    check("linalg.norm", random(2, 3, 4), order, 1)
    check("linalg.norm", random(2, 3, 4), order, (0, 1, 2))


def test_other_norms():
    check("frobenius_norm", random(2, 3), (0, 1))
    check("nuclear_norm", random(3, 4))
    for p in (None, 2, -2, 1, -1, INF, -INF, "fro", "nuc"):
        check("linalg.cond", random(2, 3, 3), p)
    check("linalg.cond", torch.tensor([[1.0, 2.0], [2.0, 4.0]]), 1)


@pytest.mark.parametrize("p", (0, 1, 2, 3, INF))
def test_dist_and_renorm(p):
    check("dist", random(3, 4), random(4, seed=1), p)
    check("renorm", random(3, 4, 2), p, 1, 1.5)
    check("renorm_", random(3, 4, 2), p, -1, 0.1, method=True)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from((0.0, 1.0, 2.0, 3.0, INF)),
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


@pytest.mark.parametrize("p", (0.0, 1.0, 2.0, 2.5, INF))
def test_distances_of_pairs(p):
    check("nn.functional.pdist", random(5, 3), p)
    check("nn.functional.pdist", random(1, 3), p)
    check("nn.functional.pairwise_distance", random(4, 3), random(3, seed=1), p)
    check("nn.functional.pairwise_distance", random(4, 3), random(3, seed=1), p, keepdim=True)


@pytest.mark.parametrize("dim", (0, 1, -1))
def test_cosine_similarity(dim):
    check("nn.functional.cosine_similarity", random(4, 3), random(4, 3, seed=1), dim)
    check("nn.functional.cosine_similarity", random(4, 3).bfloat16(), random(4, 3, seed=1).bfloat16(), dim)
    check("nn.functional.cosine_similarity", random(4, 3), torch.zeros(3), dim)
    check("nn.functional.cosine_similarity", torch.ones(4, 3).long(), torch.ones(3).long(), dim)


SHAPES = [
    ((2, 3), (4, 3), (4,)),
    ((5, 2, 3), (4, 3), (4,)),
    ((3,), (4, 3), (4,)),
    ((2, 3), (4, 3), None),
    ((2, 3), (3,), None),
    ((2, 3), (4, 5), None),
    ((2, 3), (4, 3), (5,)),
    ((), (4, 3), None),
    ((2, 3), (3,), ()),
]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize(
    "dtype", (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64)
)
def test_linear(shapes, dtype):
    check(
        "nn.functional.linear",
        *(None if shape is None else random(*shape).mul(4).to(dtype) for shape in shapes),
    )


@pytest.mark.parametrize(
    "shapes",
    [
        ((2, 3), (2, 4), (5, 3, 4), (5,)),
        ((6, 2, 3), (6, 2, 4), (5, 3, 4)),
        ((2, 3), (3, 4), (5, 3, 4)),
        ((2, 3), (2, 4), (5, 3, 5)),
    ],
)
def test_bilinear(shapes):
    tensors = [random(*shape) for shape in shapes]
    check("nn.functional.bilinear", *tensors) if len(shapes) == 4 else check(
        "nn.functional.bilinear", *tensors
    )


@pytest.mark.parametrize("name", ("trapezoid", "cumulative_trapezoid", "trapz"))
def test_trapezoids(name):
    for y in (random(3, 4), random(3, 4).t(), torch.ones(3, 4).long(), torch.ones(3, 4).bool(), random(3, 0)):
        check(name, y)
        check(name, y, dim=0)
        check(name, y, dx=0.5)
        check(name, y, random(y.shape[-1]))
        check(name, y, random(*y.shape), dim=0)
    check(name, random(3, 4), random(3))
    check(name, random(3, 4), random(4) > 0)
