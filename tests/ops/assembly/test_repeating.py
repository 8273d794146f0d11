"""Repeating against PyTorch: values, dtypes, strides and errors."""

import hypothesis.strategies as st
import pytest
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from layouts import Layout, check, layouts

dims = st.integers(-4, 3)
counts = st.lists(st.integers(0, 3), max_size=4).map(tuple)

CALLS = st.one_of(
    st.builds("x.repeat({})".format, counts),
    st.builds("x.tile({})".format, counts),
    st.builds("x.repeat_interleave({}, {})".format, st.integers(-1, 3), st.none() | dims),
    st.builds(
        "x.repeat_interleave(torch.tensor({}), {})".format, st.lists(st.integers(0, 2), max_size=4), dims
    ),
)


@pytest.mark.may_raise(least=0.5)
@settings(max_examples=300, deadline=None)
@given(call=CALLS, layout=layouts())
def test_every_layout(call, layout):
    check(call, x=layout)


FORMS = """
x.repeat(repeats=(2, 1, 1))
z.repeat(3)
x.tile(dims=(2, 1))
torch.tile(x, (2,))
torch.repeat_interleave(torch.tensor([1, 2, 3]))
torch.repeat_interleave(torch.tensor([1, 2, 3]), output_size=6)
torch.repeat_interleave(x, torch.tensor([1, 2]), dim=0, output_size=3)
torch.repeat_interleave(x, torch.tensor(3), dim=0)
""".strip().splitlines()

MESSAGES = """
x.repeat(2)
x.repeat()
x.repeat(-1, 1, 1)
torch.repeat_interleave(x, torch.tensor([1, 2, 3]), dim=0)
torch.repeat_interleave(x, torch.tensor([1, -2]), dim=0)
torch.repeat_interleave(x, torch.tensor([1.0, 2.0]), dim=0)
torch.repeat_interleave(x, -1, dim=0)
""".strip().splitlines()

X, INTEGERS, Z = Layout((2, 3, 4), (12, 4, 1)), Layout((6,), (1,), dtype="int64"), Layout((), ())


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, i=INTEGERS, z=Z)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, i=INTEGERS, z=Z)


UNFIT = """
torch.repeat_interleave(torch.ones(3), torch.tensor([0, 1, 2**62]))  # raises
torch.repeat_interleave(torch.tensor([0, 1, 2**62]))  # raises
torch.repeat_interleave(torch.ones(2, 2), None, 1)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
