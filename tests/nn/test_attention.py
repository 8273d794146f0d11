import pytest
import torch
from expressions import check as check_expression
from expressions import lines

import weft
from weft.nn.attention import SDPBackend, sdpa_kernel


def test_kernels_of_attention_can_be_asked_for():
    q = weft.ones(1, 1, 2, 2)

    @sdpa_kernel(SDPBackend.MATH)
    def attended():
        return weft.nn.functional.scaled_dot_product_attention(q, q, q)

    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert attended().shape == (1, 1, 2, 2)


def test_what_is_no_kernel_is_refused():
    for module in (weft, torch):
        with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"):
            with module.nn.attention.sdpa_kernel("math"):
                pass


def test_names_of_kernels_are_those_of_pytorch():
    theirs = torch.nn.attention.SDPBackend.__members__
    assert {name: kernel.value for name, kernel in SDPBackend.__members__.items()} == {
        name: int(kernel) for name, kernel in theirs.items()
    }


UNFIT = """
torch.nn.functional.multi_head_attention_forward(torch.ones(3, 1, 2), torch.ones(3, 1, 3), torch.ones(3, 1, 2), 2, 1, torch.ones(6, 2), None, None, None, False, 0.0, torch.ones(2, 2), None)  # raises
torch.nn.functional.multi_head_attention_forward(torch.ones(3, 1, 2), torch.ones(3, 1, 2), torch.ones(3, 1, 2), 2, 1, None, None, None, None, False, 0.0, torch.ones(2, 2), None)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
