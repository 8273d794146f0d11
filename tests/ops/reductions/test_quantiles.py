"""quantile and nanquantile against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check

from weft.ops.reductions.quantiles import INTERPOLATIONS

NAN = float("nan")
FRACTION = st.floats(0, 1)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), max_size=3),
    st.sampled_from((torch.float32, torch.float64)),
    st.one_of(FRACTION, st.lists(FRACTION, max_size=3)),
    st.sampled_from(INTERPOLATIONS),
    st.booleans(),
    st.integers(0, 2**31),
    st.data(),
)
def test_quantiles(shape, dtype, q, interpolation, keepdim, seed, data):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator, dtype=dtype)
    if data.draw(st.booleans()):
        values[torch.rand(shape, generator=generator) < 0.3] = NAN
    if isinstance(q, list):
        q = torch.tensor(q, dtype=dtype)
    dim = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1))) if shape else None
    for name in ("quantile", "nanquantile"):
        check(name, values, q, dim, keepdim, interpolation=interpolation)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    ("values", "q", "options"),
    [
        (torch.ones(3), 1.5, {}),
        (torch.ones(3), torch.tensor([0.5, -0.5]), {}),
        (torch.ones(3), torch.tensor([[0.5]]), {}),
        (torch.ones(3), torch.tensor([0.5], dtype=torch.float64), {}),
        (torch.ones(3), 0.5, {"interpolation": "cubic"}),
        (torch.ones(3), 0.5, {"dim": 1}),
        (torch.ones(3, dtype=torch.int64), 0.5, {}),
        (torch.ones(0), 0.5, {}),
        (torch.ones(2, 0), 0.5, {"dim": 0}),
    ],
)
def test_errors(values, q, options):
    check("quantile", values, q, **options)


def test_out_and_method():
    check("quantile", torch.tensor([3.0, 1.0]), 0.25, method=True)
    check("quantile", torch.tensor([3.0, 1.0]), 0.25, out=torch.empty(0))


UNFIT = """
torch.quantile(torch.ones(2), "a")  # raises
torch.quantile(torch.ones(2), None)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
