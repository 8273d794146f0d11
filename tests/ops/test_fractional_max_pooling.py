import pytest
import torch
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
