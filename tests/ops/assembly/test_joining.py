"""Joining against PyTorch: values, dtypes, strides and errors."""

import hypothesis.strategies as st
import pytest
import torch
from expressions import check as check_expression
from hypothesis import given, settings
from layouts import IMAGES, Layout, check, layouts
from oracle import assert_same, to_weft

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


WOVEN = ("bool", "int8", "int16", "bfloat16", "float32", "complex64", "float64", "int64", "complex128")


@pytest.mark.parametrize("dtype", WOVEN)
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_stacks_along_the_last_dim(dtype, count):
    values = torch.arange(35 * 50 * count).reshape(count, 35, 50).remainder(113).to(getattr(torch, dtype))
    sources = [values[0], *(each.t().contiguous().t() for each in values[1:])]
    sources[-1] = sources[-1].flip(0)[:, :50]
    mine = [to_weft(each) for each in sources]
    for _ in range(4):  # after a few calls machine code replays them
        assert_same(weft.stack(mine, 2), torch.stack(sources, 2))
    out = weft.zeros(35, 50, count, dtype=getattr(weft, dtype))
    assert_same(weft.stack(mine, -1, out=out), torch.stack(sources, 2))


def test_stacks_of_complex_numbers_whose_conjugation_is_pending():
    x = torch.rand(4, 3, dtype=torch.complex64)
    mine = to_weft(x)
    assert_same(weft.stack([mine.conj(), mine], 2), torch.stack([x.conj(), x], 2))
    assert_same(weft.stack([mine.imag, mine.conj().imag], 2), torch.stack([x.imag, x.conj().imag], 2))


@pytest.mark.parametrize("count", [63, 64, 130])
def test_gradients_of_many_tensors(count):
    """The node of a recorded call had 64 bits for its inputs, so that 64 tensors raised struct.error."""
    mine = [weft.full((2,), float(k), requires_grad=True) for k in range(count)]
    for join in (weft.cat, weft.stack):
        for _ in range(3):
            grads = weft.autograd.grad((join(mine) ** 2).sum(), mine)
        assert [each.tolist() for each in grads] == [[2.0 * k] * 2 for k in range(count)]
