"""Reversing, turning and rolling against PyTorch: values, dtypes, strides and errors."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from layouts import IMAGES, Layout, check, layouts
from oracle import to_torch, to_weft

some_dims = st.lists(st.integers(-3, 2), max_size=3).map(tuple)

CALLS = st.one_of(
    st.builds("x.flip({})".format, some_dims),
    st.sampled_from(["x.fliplr()", "x.flipud()"]),
    st.builds("x.rot90({}, {})".format, st.integers(-5, 5), some_dims),
    st.builds("x.roll({}, {})".format, st.integers(-5, 5), some_dims),
    st.builds("x.roll({}, {})".format, some_dims, some_dims),
)


@pytest.mark.may_raise(least=0.35)
@settings(max_examples=300, deadline=None)
@given(call=CALLS, layout=layouts())
def test_every_layout(call, layout):
    check(call, x=layout)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=IMAGES)
def test_memory_formats(data, shape):
    x = data.draw(layouts(shape=shape))
    check("x.flip(1)", x=x)
    check("x.roll((1, 1), (1, 2))", x=x)


FORMS = """
x.flip(dims=[0])
x.flip(0, 1)
torch.roll(x, shifts=(1, 2), dims=(0, 1))
torch.rot90(x, k=1, dims=[0, 2])
""".strip().splitlines()

MESSAGES = """
x.roll((1, 2), 0)
x.roll(())
z.roll(1, 0)
x.flip((0, 0))
i.fliplr()
z.flipud()
i.rot90()
x.rot90(1, [0])
x.rot90(1, [0, 0])
x.rot90(1, [0, -3])
x.rot90(1, [5, 5])
""".strip().splitlines()

X, INTEGERS, Z = Layout((2, 3, 4), (12, 4, 1)), Layout((6,), (1,), dtype="int64"), Layout((), ())


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, i=INTEGERS, z=Z)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, i=INTEGERS, z=Z)


@pytest.mark.parametrize("dtype", ("bool", "int16", "float32", "complex128"))
def test_flips_of_many_elements(dtype):
    values = torch.arange(3 * 1001).reshape(3, 1001).to(getattr(torch, dtype))
    for dims in (0, 1, (0, 1)):
        torch.testing.assert_close(to_torch(to_weft(values).flip(dims)), values.flip(dims))
