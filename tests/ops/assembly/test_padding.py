import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import check

import weft

PAD = "nn.functional.pad"


@pytest.mark.may_raise(least=0.4)
@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["constant", "reflect", "replicate", "circular"]),
    st.integers(2, 5),
    st.lists(st.integers(-2, 3), min_size=1, max_size=6),
    st.sampled_from([torch.float32, torch.int64, torch.complex64, torch.bfloat16]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)
def test_pad_agrees(mode, ndim, widths, dtype, transposed, fitting):
    if fitting:  # two for each dim; the dims of a batch and channels in front
        widths = (widths * 2)[: max(len(widths) // 2 * 2, 2)]
        ndim = max(ndim, len(widths) // 2) if mode == "constant" else len(widths) // 2 + 1 + ndim % 2
        # Widths that other modes allow in all of the dims.
        widths = widths if mode == "constant" else [min(width, 1) for width in widths]
    if mode == "circular":
        # Where one side grows and the other shrinks, PyTorch shows memory that it never wrote.
        assume(all(before * after >= 0 for before, after in zip(widths[::2], widths[1::2])))
    shape = (2, 3, 4, 3, 2)[:ndim]
    x = torch.arange(torch.Size(shape).numel()).to(dtype).reshape(shape)
    check(PAD, x.mT if transposed else x, widths, mode)


@pytest.mark.parametrize("value", [1.5, -2, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_the_value_is_converted(value, dtype):
    check(PAD, torch.ones(2, 2).to(dtype), (1, 1), value=value)


def test_channels_last_stays():
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    for mode in ("constant", "reflect", "replicate", "circular"):
        check(PAD, x, (1, 1, 0, 1), mode)


@pytest.mark.refuses("all")
def test_what_does_not_fit_is_an_error():
    check(PAD, torch.ones(2, 3), (1,))
    check(PAD, torch.ones(2, 3), (1, 1), "other")
    check(PAD, torch.ones(1, 2, 3), (1, 1), "reflect", 2.0)
    check(PAD, torch.ones(1, 2, 3), (3, 1), "reflect")


def test_what_a_cut_leaves_goes_around():
    rows = weft.tensor([[0.0, 3.0, 6.0], [1.0, 4.0, 7.0]])
    assert weft.nn.functional.pad(rows, (2, -1), "circular").tolist() == [[0, 3, 0, 3], [1, 4, 1, 4]]
    with pytest.raises(RuntimeError, match="empty dimension"):
        weft.nn.functional.pad(rows, (1, -3), "circular")


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("widths", [(1, 2), (3, 0, 0, 2), (2, 1, 1, 1, 0, 2), (1, -1)])
def test_derivatives_of_repeated_elements(mode, widths):
    found = []
    for T in (torch, weft):
        x = T.arange(120.0, dtype=T.float64).reshape(1, 2, 3, 4, 5)[(0,) * (3 - len(widths) // 2)]
        x.requires_grad_()
        y = T.nn.functional.pad(x, widths if mode != "circular" else [abs(each) for each in widths], mode)
        (first,) = T.autograd.grad((y**3).sum(), x, create_graph=True)
        (second,) = T.autograd.grad((first**2).sum(), x)
        found.append([each.detach().numpy() for each in (y, first, second)])
    for expected, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected)


UNFIT = """
torch.nn.functional.pad(torch.ones(2), (1, 1), None)  # raises
torch.nn.functional.pad(torch.ones(2), (1, 1), 3)  # raises
torch.nn.functional.pad(torch.ones(2), (1, 1), "a")  # raises
torch.nn.functional.pad(torch.ones(2), 1)  # raises
torch.nn.functional.pad(torch.ones(2), (1.0, 1))  # raises
torch.constant_pad_nd(torch.ones(2), (0, 1), "a")  # raises
torch.nn.functional.pad(torch.ones(2), (0, 1), value="a")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


VALUE_OF_PADDING = """
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=0.25)
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=-0.25)
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=0.0)
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=1e30)
torch.nn.functional.pad(torch.tensor([1], dtype=torch.uint8), (1, 0), value=-1)  # raises
torch.nn.functional.pad(torch.tensor([1]), (1, 0), value=2.75)
torch.nn.functional.pad(torch.tensor([1]), (1, 0), value=True)
torch.nn.functional.pad(torch.tensor([1.0]), (1, 0), value=True)
torch.nn.functional.pad(torch.tensor([1]), (1, 0), value=float("nan"))  # raises
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=float("nan"))
torch.nn.functional.pad(torch.tensor([1], dtype=torch.uint8), (1, 0), value=-1)  # raises
torch.constant_pad_nd(torch.tensor([1], dtype=torch.uint8), (1, 0), value=-1)
torch.constant_pad_nd(torch.tensor([1], dtype=torch.int64), (1, 0), value=2**53 + 1)
torch.nn.functional.pad(torch.tensor([1], dtype=torch.int64), (1, 0), value=2**53 + 1)
torch.nn.functional.pad(torch.tensor([1j]), (1, 0), value=1j)  # raises
torch.constant_pad_nd(torch.tensor([1j]), (1, 0), value=1j)
torch.constant_pad_nd(torch.tensor([1j]), (1, 0, 1, 0), value=1j)  # raises
torch.constant_pad_nd(torch.tensor([1j]), (1, 0, 1), value=1j)  # raises
torch.nn.functional.pad(torch.tensor([1.0]), (1, 0), value=torch.tensor(2))
torch.nn.functional.pad(torch.tensor([1.0]), (1, 0), value="2")  # raises
torch.nn.functional.pad(torch.tensor([1]), (1, 0), value=float("inf"))  # raises
torch.nn.functional.pad(torch.tensor([1]), (1, 0), value=10**400)  # raises
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=0)
torch.nn.functional.pad(torch.tensor([True]), (1, 0), value=0.0)
"""


@pytest.mark.parametrize("expression", lines(VALUE_OF_PADDING))
def test_value_of_padding(expression):
    """The value is a float for pad, a number for constant_pad_nd; any but 0 is True."""
    check_expression(expression)


@pytest.mark.parametrize(
    ("size", "widths"),
    [
        ((40, 600), (3, 2, 1, 4)),
        ((40, 600), (0, 5)),
        ((40, 600), (3, 2, -1, 4)),
        ((3, 30, 400), (0, 0, 2, 0, 0, 1)),
        ((2, 3, 50, 300), (1, 1, 1, 1)),
        ((0, 600), (1, 2, 30, 10)),
    ],
)
def test_borders_of_large_tensors(size, widths):
    check("nn.functional.pad", torch.randn(*size), widths, "constant", 2.5)
