import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from oracle import assert_same, to_weft

import weft


@pytest.mark.parametrize("n", [2, 3])
def test_fractional_windows_draw_the_same_numbers(n):
    x = torch.randn(2, 3, *[7] * n)
    torch.manual_seed(3)
    expected = getattr(torch.nn.functional, f"fractional_max_pool{n}d")(
        x, 2, output_ratio=[0.5] * n, return_indices=True
    )
    weft.manual_seed(3)
    got = getattr(weft.nn.functional, f"fractional_max_pool{n}d")(
        to_weft(x), 2, output_ratio=[0.5] * n, return_indices=True
    )
    assert_same(got, expected)


UNFIT = """
torch.nn.functional.fractional_max_pool2d(torch.ones(2, 4, 6, 6), 2, output_size=(3,))  # raises
torch.nn.functional.fractional_max_pool2d(torch.ones(2, 4, 6, 6), (2,), output_size=3)  # raises
torch.nn.functional.fractional_max_pool3d(torch.ones(2, 4, 6, 6, 6), 2, output_size=5)  # raises
torch.nn.functional.fractional_max_pool3d(torch.ones(2, 4, 6, 6, 6), 2, output_size=4)
torch.nn.functional.fractional_max_pool2d(torch.ones(2, 4, 6, 6), 2, output_size=5)
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
