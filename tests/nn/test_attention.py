import pytest
import torch

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
