import pytest
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from images import images
from oracle import check

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@settings(max_examples=60, deadline=None)
@given(images(), st.integers(1, 4))
def test_adaptive_windows(image, size):
    n, x = image
    check(f"{F}adaptive_avg_pool{n}d", x, size)
    check(f"{F}adaptive_max_pool{n}d", x, size, return_indices=True)


UNFIT = """
torch.nn.functional.adaptive_avg_pool1d(torch.ones(1, 1, 4), None)  # raises
torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4), None)  # raises
torch.nn.functional.adaptive_max_pool3d(torch.ones(1, 1, 4, 4, 4), None)  # raises
torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4), (None, 2))
torch.nn.functional.adaptive_avg_pool1d(torch.ones(1, 1, 4), (None,))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
