"""Channels and pixels against PyTorch: values, dtypes, strides and errors."""

import hypothesis.strategies as st
import pytest
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from layouts import IMAGES, Layout, check, layouts


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=IMAGES.filter(lambda shape: shape[1] == 4 and len(shape) == 4))
def test_memory_formats(data, shape):
    x = data.draw(layouts(shape=shape))
    if x.dtype != "bool":
        check("torch.pixel_shuffle(x, 2)", x=x)
        check("torch.channel_shuffle(x, 2)", x=x)


FORMS = """
torch.pixel_unshuffle(torch.ones(1, 4, 4, 2), 2)
""".strip().splitlines()

MESSAGES = """
torch.channel_shuffle(x.unsqueeze(0), 2)
torch.pixel_shuffle(i, 2)  # raises
torch.pixel_shuffle(x, -2)  # raises
torch.pixel_unshuffle(x, 2)  # raises
""".strip().splitlines()

X, INTEGERS, Z = Layout((2, 3, 4), (12, 4, 1)), Layout((6,), (1,), dtype="int64"), Layout((), ())


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, i=INTEGERS, z=Z)


@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, i=INTEGERS, z=Z)


UNFIT = """
torch.pixel_shuffle(torch.ones(1, 0, 1, 1), 2**62)  # raises
torch.pixel_shuffle(torch.ones(1, 4, 1, 1), 2**32)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
