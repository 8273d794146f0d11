"""Joining and rearranging against PyTorch: values, dtypes, strides and errors."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from layouts import Layout, check, layouts
from oracle import to_torch, to_weft

import weft

dims = st.integers(-4, 3)
some_dims = st.lists(st.integers(-3, 2), max_size=3).map(tuple)
counts = st.lists(st.integers(0, 3), max_size=4).map(tuple)
names = st.sampled_from(["cat", "stack"])

CALLS = st.one_of(
    st.builds("torch.{}([x, x], {})".format, names, dims),
    st.builds("torch.{}([x, x.to(torch.float64), x], {})".format, names, dims),
    st.builds("torch.{}([x, x.contiguous()], {})".format, names, dims),
    st.builds("torch.cat([x, x.narrow(0, 0, 1), x], {})".format, dims),
    st.builds("torch.{}([x, x, x])".format, st.sampled_from(["hstack", "vstack", "dstack", "column_stack"])),
    st.builds("x.repeat({})".format, counts),
    st.builds("x.tile({})".format, counts),
    st.builds("x.repeat_interleave({}, {})".format, st.integers(-1, 3), st.none() | dims),
    st.builds(
        "x.repeat_interleave(torch.tensor({}), {})".format, st.lists(st.integers(0, 2), max_size=4), dims
    ),
    st.builds("x.flip({})".format, some_dims),
    st.sampled_from(["x.fliplr()", "x.flipud()", "torch.block_diag(x, x)"]),
    st.builds("x.rot90({}, {})".format, st.integers(-5, 5), some_dims),
    st.builds("x.roll({}, {})".format, st.integers(-5, 5), some_dims),
    st.builds("x.roll({}, {})".format, some_dims, some_dims),
)


@settings(max_examples=1000, deadline=None)
@given(call=CALLS, layout=layouts())
def test_every_layout(call, layout):
    check(call, x=layout)


SHAPES = st.sampled_from([(2, 3, 2, 2), (1, 4, 3, 3), (2, 1, 2, 2), (2, 4, 2, 2, 2), (0, 2, 2, 2)])


@settings(max_examples=200, deadline=None)
@given(data=st.data(), shape=SHAPES)
def test_memory_formats(data, shape):
    x = data.draw(layouts(shape=shape))
    check("torch.cat([x, x], 1)", x=x)
    check("x.flip(1)", x=x)
    check("x.roll((1, 1), (1, 2))", x=x)
    if shape[1] == 4 and len(shape) == 4 and x.dtype != "bool":
        check("torch.pixel_shuffle(x, 2)", x=x)
        check("torch.channel_shuffle(x, 2)", x=x)


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
torch.cat([i, i], out=torch.empty(0, dtype=torch.bool))
torch.cat([x, x], 1, out=torch.empty(6, 2, 4).transpose(0, 1))
torch.cat([x, x], out=torch.empty(1).expand(4, 3, 4))
torch.stack([x, x], out=torch.empty(0, dtype=torch.float64))
torch.hstack([i, i], out=torch.empty(0, dtype=torch.int64))
torch.stack([z, z, z])
torch.hstack([z, z])
torch.dstack([i, i])
torch.column_stack([i, x.select(0, 0).flatten().narrow(0, 0, 6)])
torch.block_diag()
torch.block_diag(i, z, x.select(0, 0))
x.repeat(repeats=(2, 1, 1))
z.repeat(3)
x.tile(dims=(2, 1))
torch.tile(x, (2,))
x.flip(dims=[0])
x.flip(0, 1)
torch.roll(x, shifts=(1, 2), dims=(0, 1))
torch.rot90(x, k=1, dims=[0, 2])
torch.repeat_interleave(torch.tensor([1, 2, 3]))
torch.repeat_interleave(torch.tensor([1, 2, 3]), output_size=6)
torch.repeat_interleave(x, torch.tensor([1, 2]), dim=0, output_size=3)
torch.repeat_interleave(x, torch.tensor(3), dim=0)
torch.meshgrid(i, i)
torch.meshgrid([i, z.to(torch.int64)], indexing='ij')
torch.meshgrid(i, torch.tensor([1, 2]), indexing='xy')
torch.cartesian_prod(i)
torch.cartesian_prod(i, torch.tensor([1, 2]))
torch.combinations(i)
torch.combinations(i, 3)
torch.combinations(i, 0)
torch.combinations(i, 9)
torch.combinations(i, r=2, with_replacement=True)
torch.pixel_unshuffle(torch.ones(1, 4, 4, 2), 2)
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
x.repeat(2)
x.repeat()
x.repeat(-1, 1, 1)
torch.repeat_interleave(x, torch.tensor([1, 2, 3]), dim=0)
torch.repeat_interleave(x, torch.tensor([1, -2]), dim=0)
torch.repeat_interleave(x, torch.tensor([1.0, 2.0]), dim=0)
torch.repeat_interleave(x, -1, dim=0)
x.roll((1, 2), 0)
x.roll(())
z.roll(1, 0)
x.flip((0, 0))
i.fliplr()
z.flipud()
i.rot90()
x.rot90(1, [0])
x.rot90(1, [0, 0])
torch.meshgrid(i, x)
torch.meshgrid()
torch.meshgrid(i, indexing='a')
torch.cartesian_prod(i, x.to(torch.int64))
torch.combinations(x)
torch.combinations(i, -1)
torch.channel_shuffle(x.unsqueeze(0), 2)
torch.pixel_shuffle(i, 2)
torch.pixel_shuffle(x, -2)
torch.pixel_unshuffle(x, 2)
""".strip().splitlines()

X, INTEGERS, Z = Layout((2, 3, 4), (12, 4, 1)), Layout((6,), (1,), dtype="int64"), Layout((), ())


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, i=INTEGERS, z=Z)


@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, i=INTEGERS, z=Z)


def test_cat_refuses_to_overwrite_its_inputs():
    a = weft.zeros(4)
    with pytest.raises(RuntimeError, match="Found overlap in input tensor 0"):
        weft.cat([a.narrow(0, 0, 2), weft.zeros(2)], out=a)


def test_meshgrid_warns_without_indexing():
    weft.core.warn.warn_once.cache_clear()
    with pytest.warns(UserWarning, match="required to pass the indexing argument"):
        weft.meshgrid(weft.zeros(2))


@pytest.mark.parametrize("dtype", ("bool", "int16", "float32", "complex128"))
def test_flips_of_many_elements(dtype):
    values = torch.arange(3 * 1001).reshape(3, 1001).to(getattr(torch, dtype))
    for dims in (0, 1, (0, 1)):
        torch.testing.assert_close(to_torch(to_weft(values).flip(dims)), values.flip(dims))
