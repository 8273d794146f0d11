"""hann_window and its relatives against PyTorch."""

import pytest
import torch
from oracle import check

NAMES = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", (0, 1, 2, 7, 20))
def test_windows(name, length):
    for periodic in (True, False):
        for dtype in (None, torch.float64):
            check(name, length, periodic, dtype=dtype)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("name", NAMES)
def test_errors(name):
    check(name, -1)
    check(name, 2.5)
    check(name, 4, dtype=torch.int64)
    check(name, 4, wrong=1)


def test_parameters():
    check("hamming_window", 6, True, 0.6, 0.3)
    check("kaiser_window", 6, False, 3.0)
