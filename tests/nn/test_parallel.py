import torch

import weft
import weft.nn as nn
from weft.nn.attention import SDPBackend, sdpa_kernel


def test_data_parallel_without_devices_is_the_module():
    ours, theirs = nn.DataParallel(nn.Linear(2, 1)), torch.nn.DataParallel(torch.nn.Linear(2, 1))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours(weft.ones(3, 2)).equal(ours.module(weft.ones(3, 2)))


def test_kernels_of_attention_can_be_asked_for():
    q = weft.ones(1, 1, 2, 2)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert nn.functional.scaled_dot_product_attention(q, q, q).shape == (1, 1, 2, 2)
