import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from images import images, windows
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@pytest.mark.may_raise(least=0.35)
@settings(max_examples=100, deadline=None)
@given(images(), windows, st.booleans())
def test_averages(image, options, count_include_pad):
    n, x = image
    check(f"{F}avg_pool{n}d", x, **options, count_include_pad=count_include_pad)


@settings(max_examples=30, deadline=None)
@given(images(least=2), st.sampled_from([1, 2, 3.0]), st.booleans())
def test_norms(image, power, ceil_mode):
    n, x = image
    check(f"{F}lp_pool{n}d", x.double().abs(), power, 2, ceil_mode=ceil_mode)


@pytest.mark.refuses(1)
def test_windows_with_many_elements_and_wide_divisors():
    x = torch.randn(1, 2, 9, 9, dtype=torch.float64)
    check(F + "avg_pool2d", x, 7, 1, 3, divisor_override=5)
    check(F + "avg_pool2d", (x * 100).long(), 3)
    check(F + "avg_pool2d", x, 2, divisor_override=0)


UNFIT = """
torch.nn.functional.lp_pool1d(torch.tensor([[1.0, -3.0, 2.0, 0.5]]), inf, 2)
torch.nn.functional.lp_pool1d(torch.tensor([[1.0, -3.0, 2.0, 0.5]]), inf, 2, stride=1)
torch.nn.functional.lp_pool2d(torch.arange(16.0).reshape(1, 4, 4) - 8, -inf, 2)
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
