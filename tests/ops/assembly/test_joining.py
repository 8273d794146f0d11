"""Joining against PyTorch: values, dtypes, strides and errors."""

import hypothesis.strategies as st
import pytest
from expressions import check as check_expression
from hypothesis import given, settings
from layouts import IMAGES, Layout, check, layouts

import weft

dims = st.integers(-4, 3)
names = st.sampled_from(["cat", "stack"])

CALLS = st.one_of(
    st.builds("torch.{}([x, x], {})".format, names, dims),
    st.builds("torch.{}([x, x.to(torch.float64), x], {})".format, names, dims),
    st.builds("torch.{}([x, x.contiguous()], {})".format, names, dims),
    st.builds("torch.cat([x, x.narrow(0, 0, 1), x], {})".format, dims),
    st.builds("torch.{}([x, x, x])".format, st.sampled_from(["hstack", "vstack", "dstack", "column_stack"])),
    st.just("torch.block_diag(x, x)"),
)


@pytest.mark.may_raise(least=0.45)
@settings(max_examples=400, deadline=None)
@given(call=CALLS, layout=layouts())
def test_every_layout(call, layout):
    check(call, x=layout)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), shape=IMAGES)
def test_memory_formats(data, shape):
    x = data.draw(layouts(shape=shape))
    check("torch.cat([x, x], 1)", x=x)
    check("torch.stack([x, x], 1)", x=x)


FORMS = """
torch.concat([x, x])
torch.concatenate([x, x], axis=1)
torch.cat(tensors=[x, x], dim=-1)
torch.row_stack([i, i])
torch.cat([torch.tensor([]), x])
torch.cat([torch.zeros(0), torch.zeros(0)], 1)
torch.cat([torch.zeros(0, dtype=torch.float64), x], 1)
torch.cat([i, torch.tensor([1.5])])
torch.cat([i, i.to(torch.uint8)])
torch.cat([x, x], out=torch.empty(0))
torch.cat([i, i], out=torch.empty(12))
torch.cat([i, i], out=torch.empty(0, dtype=torch.bool))  # raises
torch.cat([x, x], 1, out=torch.empty(6, 2, 4).transpose(0, 1))
torch.cat([x, x], out=torch.empty(1).expand(4, 3, 4))  # raises
torch.stack([x, x], out=torch.empty(0, dtype=torch.float64))
torch.hstack([i, i], out=torch.empty(0, dtype=torch.int64))
torch.stack([z, z, z])
torch.hstack([z, z])
torch.dstack([i, i])
torch.column_stack([i, x.select(0, 0).flatten().narrow(0, 0, 6)])
torch.block_diag()
torch.block_diag(i, z, x.select(0, 0))
""".strip().splitlines()

MESSAGES = """
torch.cat([])
torch.cat([x, x], 3)
torch.cat([z, z])
torch.cat([x, i])
torch.cat([x, x.transpose(0, 1)])
torch.cat(x)
torch.cat([x, 1])
torch.cat([i, torch.tensor([1.5])], out=torch.empty(0, dtype=torch.int64))
torch.stack([])
torch.stack([x, i])
torch.stack([x, x], 5)
torch.hstack([])
torch.block_diag(x)
""".strip().splitlines()

X, INTEGERS, Z = Layout((2, 3, 4), (12, 4, 1)), Layout((6,), (1,), dtype="int64"), Layout((), ())


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, i=INTEGERS, z=Z)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, i=INTEGERS, z=Z)


def test_cat_refuses_to_overwrite_its_inputs():
    a = weft.zeros(4)
    with pytest.raises(RuntimeError, match="Found overlap in input tensor 0"):
        weft.cat([a.narrow(0, 0, 2), weft.zeros(2)], out=a)


def test_block_diag_promotes_as_sums_do():
    check_expression("torch.block_diag(torch.ones(1, 1).bfloat16(), torch.tensor(2.0, dtype=torch.float64))")
    check_expression("torch.block_diag(torch.ones(1, 1, dtype=torch.int32), torch.tensor(2.5))")


def test_vectors_without_elements_may_be_joined_along_any_dim():
    check_expression(
        "[x := torch.zeros(0, requires_grad=True), torch.cat((x, x), 1).sum().backward(), x.grad][2]"
    )
