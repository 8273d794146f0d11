"""Running sums, products and extrema, differences and covariances against PyTorch."""

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_torch, to_weft
from twins import tensors

import weft

NUMBERS = ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool")
NAN, INF = float("nan"), float("inf")


@pytest.mark.may_raise(least=0.35)
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(("cumsum", "cumprod")),
    tensors(dtypes=(*NUMBERS, "complex64")),
    st.integers(-3, 2),
    st.sampled_from((None, torch.float64, torch.int32, torch.bool)),
)
def test_sums_and_products(name, tensor, dim, dtype):
    check(name, tensor, dim, dtype=dtype)
    check(f"{name}_", tensor.clone(), dim, method=True)
    check(f"{name}_", tensor.clone(), dim, dtype=dtype, method=True)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16, torch.float32, torch.complex64))
@pytest.mark.parametrize("name", ("cumsum", "cumprod"))
def test_results_are_rounded_from_a_wider_sum(name, dtype):
    tensor = torch.randn(2000, dtype=dtype)
    tensor = tensor.sgn() + tensor / 1000 if name == "cumprod" else tensor
    expected = getattr(torch, name)(tensor, 0)
    got = to_torch(getattr(weft, name)(to_weft(tensor), 0))
    if name == "cumsum" or not dtype.is_complex:  # torch's complex products fuse differently
        assert torch.equal(got, expected)
    else:
        torch.testing.assert_close(got, expected)


def test_cumsum_into_a_tensor_of_another_type():
    check("cumsum", torch.tensor([1.5, 2.5]), 0, out=torch.empty(2, dtype=torch.int32))
    check("cumsum", torch.tensor([1, 2]), 0, out=torch.empty(2, dtype=torch.float64))


@pytest.mark.may_raise(least=0.55)
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(("cummax", "cummin")),
    st.lists(st.integers(0, 4), max_size=3),
    st.sampled_from(NUMBERS),
    st.integers(-3, 2),
    st.integers(0, 2**31),
)
def test_running_extrema(name, shape, dtype, dim, seed):
    generator = torch.Generator().manual_seed(seed)
    tensor = torch.randint(0, 4, shape, generator=generator).to(getattr(torch, dtype))
    if tensor.is_floating_point():
        tensor[torch.rand(shape, generator=generator) < 0.2] = NAN
        tensor[torch.rand(shape, generator=generator) < 0.2] = -0.0
    # PyTorch accepts wrong dims of tensors without elements.
    if tensor.numel() or -max(len(shape), 1) <= dim < max(len(shape), 1):
        check(name, tensor, dim)


@pytest.mark.may_raise(least=0.6)
@settings(max_examples=60, deadline=None)
@given(
    tensors(dtypes=("float16", "bfloat16", "float32", "float64", "complex64", "int64")), st.integers(-3, 2)
)
def test_logcumsumexp(tensor, dim):
    check("logcumsumexp", tensor, dim)


def test_logcumsumexp_of_large_and_infinite():
    check("logcumsumexp", torch.tensor([1000.0, 1000.0, -INF, 999.0]), 0)
    check("logcumsumexp", torch.tensor([-INF, -INF, 1.0, INF, 2.0, NAN, 3.0]), 0)
    check("logcumsumexp", torch.tensor([900 + 1j, 900 - 2j, 1j]), 0)


@pytest.mark.may_raise(least=0.55)
@settings(max_examples=100, deadline=None)
@given(
    tensors(dtypes=("int64", "float32", "bool", "complex64", "bfloat16")),
    st.integers(-1, 4),
    st.integers(-1, 0),
    st.booleans(),
    st.booleans(),
)
def test_diff(tensor, n, dim, before, after):
    check("diff", tensor, n, dim, tensor if before else None, tensor if after else None)


@pytest.mark.refuses({"other0": 2, "other1": 1, "other2": 1})
@pytest.mark.parametrize("other", (torch.ones(2), torch.ones(2, 2), torch.ones(3, 3)))
def test_diff_of_shapes_that_do_not_fit(other):
    check("diff", torch.ones(2, 3), prepend=other)
    check("diff", torch.ones(2, 3), append=other, dim=0)


@pytest.mark.refuses("all")
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore")
@given(
    st.lists(st.integers(1, 4), max_size=3),
    st.sampled_from(("float32", "float64", "int64", "complex64", "bool")),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_cov_and_corrcoef(shape, dtype, correction, frequency, weight, seed):
    generator = torch.Generator().manual_seed(seed)
    tensor = (10 * torch.rand(shape, generator=generator)).to(getattr(torch, dtype))
    count = tensor.shape[-1] if tensor.dim() else 1
    fweights = torch.randint(1, 4, (count,), generator=generator) if frequency else None
    aweights = torch.rand(count, generator=generator) + 0.5 if weight else None
    options = {"correction": correction, "fweights": fweights, "aweights": aweights}
    expected = _or_none(torch.cov, tensor, options)
    if expected is None:
        check("cov", tensor, **options)
    else:
        mine = {name: to_weft(value) if torch.is_tensor(value) else value for name, value in options.items()}
        got = weft.cov(to_weft(tensor), **mine)
        assert tuple(got.shape) == tuple(expected.shape)
        torch.testing.assert_close(to_torch(got), expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def _or_none(function, tensor, options):
    try:
        return function(tensor, **options)
    except RuntimeError:
        return None


@pytest.mark.refuses("all")
def test_corrcoef():
    for values in (torch.randn(3, 9), torch.randn(9), torch.randn(2, 9, dtype=torch.complex64)):
        expected = torch.corrcoef(values)
        torch.testing.assert_close(to_torch(weft.corrcoef(to_weft(values))), expected)
    check("corrcoef", torch.ones(2, 2, 2))


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "options",
    [
        {"fweights": torch.ones(3)},
        {"fweights": torch.tensor([1, 2, -3])},
        {"fweights": torch.ones(2, dtype=torch.int64)},
        {"fweights": torch.ones(1, 3, dtype=torch.int64)},
        {"aweights": torch.tensor([1, 2, 3])},
        {"aweights": -torch.ones(3)},
    ],
)
def test_weights_that_do_not_fit(options):
    check("cov", torch.randn(2, 3), **options)


def test_long_sums_against_exact_arithmetic():
    values = np.random.default_rng(0).standard_normal(10**5).astype(np.float32)
    got = weft.cumsum(weft.from_numpy(values), 0)
    assert_same(got, torch.cumsum(torch.from_numpy(values), 0))
    np.testing.assert_array_equal(got.numpy(), np.cumsum(values.astype(np.float64)).astype(np.float32))


LEAVES_BEFORE_DIMS = """
torch.ones(2, requires_grad=True).cumsum_(5)  # raises
torch.ones(2, requires_grad=True).cumprod_(5)  # raises
"""


@pytest.mark.parametrize("expression", lines(LEAVES_BEFORE_DIMS))
def test_leaves_before_dims(expression):
    check_expression(expression)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64"])
@pytest.mark.parametrize("length, most", [(1, 3), (7, 3), (8, 3), (9, 3), (40, 3), (300, 100)])
def test_running_extrema_in_vectors(dtype, length, most):
    """Rows with ties, infinities and NaNs, contiguous and not: the latest of equal elements counts, and NaN stays.

    In long rows of many different numbers, most vectors change nothing.
    """
    torch.manual_seed(length)
    x = torch.randint(-most, most + 1, (30, length)).to(getattr(torch, dtype))
    if x.is_floating_point():
        special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
        chosen = special[torch.randint(0, 4, x.shape)].to(x.dtype)
        x = chosen.where(torch.rand(x.shape) < torch.linspace(0, 0.3, 30)[:, None], x)
    for theirs in (x, x.t().contiguous().t()):
        for name in ("cummax", "cummin"):
            check(name, theirs, 1)
