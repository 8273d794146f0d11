"""torch.signal.windows against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from oracle import check

import weft.signal.windows

NAMES = tuple(name for name in weft.signal.windows.__all__ if name != "general_cosine")


def test_there_are_all():
    assert set(weft.signal.windows.__all__) == set(torch.signal.windows.__all__)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", (0, 1, 2, 7, 20))
def test_windows(name, size):
    for sym in (True, False):
        for dtype in (None, torch.float64):
            check(f"signal.windows.{name}", size, sym=sym, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kaiser_windows_whose_ends_are_rounded_beyond_beta(dtype):
    for beta in range(1, 100):
        window = weft.signal.windows.kaiser(5, beta=beta / 10, dtype=getattr(weft, dtype))
        expected = torch.signal.windows.kaiser(5, beta=beta / 10, dtype=getattr(torch, dtype))
        assert not window.isnan().any()
        if not expected.isnan().any():
            torch.testing.assert_close(torch.tensor(window.tolist()), torch.tensor(expected.tolist()))


@pytest.mark.refuses(
    [
        "exponential-options0",
        "exponential-options1",
        "gaussian-options3",
        "kaiser-options5",
        "general_cosine-options9",
        "general_cosine-options10",
        "hann-options12",
        "nuttall-options13",
    ]
)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("exponential", {"tau": 0.0}),
        ("exponential", {"center": 1.0}),
        ("exponential", {"center": 1.0, "sym": False, "tau": 2.0}),
        ("gaussian", {"std": 0.0}),
        ("gaussian", {"std": 2.0}),
        ("kaiser", {"beta": -1.0}),
        ("kaiser", {"beta": 0.0}),
        ("kaiser", {"beta": 5}),
        ("general_hamming", {"alpha": 0.7}),
        ("general_cosine", {"a": []}),
        ("general_cosine", {"a": 3}),
        ("general_cosine", {"a": [0.5, 0.2, 0.1], "sym": False}),
        ("hann", {"dtype": torch.float16}),
        ("nuttall", {"dtype": torch.int64}),
    ],
)
def test_parameters(name, options):
    check(f"signal.windows.{name}", 5, **options)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("name", NAMES)
def test_negative_sizes(name):
    check(f"signal.windows.{name}", -1)


UNFIT = """
torch.signal.windows.exponential(0, tau="a")  # raises
torch.signal.windows.exponential(0, tau=-1)  # raises
torch.signal.windows.gaussian(0, std=None)  # raises
torch.signal.windows.kaiser(0, beta="a")  # raises
torch.signal.windows.kaiser(5, beta=None)  # raises
torch.signal.windows.kaiser(0, sym=False)
torch.signal.windows.bartlett(0, sym=False)
torch.signal.windows.cosine(0)
torch.signal.windows.nuttall(0)
torch.signal.windows.general_cosine(0, a=[])
torch.signal.windows.hann(0, requires_grad=True)
torch.signal.windows.general_cosine(1, a=[])
torch.signal.windows.general_cosine(3, a=[])  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
