"""Views against PyTorch: the same elements on the same storage with the same strides, or the same error."""

import hypothesis.strategies as st
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import assume, given, settings
from layouts import Layout, check, layouts

import weft

dims = st.integers(-5, 4)
some_dims = st.lists(st.integers(-4, 3), max_size=4).map(tuple)
sizes = st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4, 6, 8, 12, 24]), max_size=4).map(tuple)

counts = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple)

# One view as an expression on x, its arguments drawn.
CALLS = st.one_of(
    st.builds("x.view({})".format, sizes),
    st.builds("x.reshape({})".format, sizes),
    st.builds("x.expand({})".format, sizes),
    st.builds("x.flatten({}, {})".format, dims, dims),
    st.builds("x.unflatten({}, {})".format, dims, sizes),
    st.sampled_from(["x.ravel()", "x.T", "x.mT", "x.t()", "x.H", "x.mH", "x.adjoint()", "x.squeeze()"]),
    st.builds("x.unsqueeze({})".format, dims),
    st.builds("x.squeeze({})".format, dims),
    st.builds("x.squeeze({})".format, some_dims),
    st.builds("x.permute({})".format, some_dims),
    st.builds("x.permute({})".format, st.permutations(range(3)).map(tuple)),
    st.builds("x.transpose({}, {})".format, dims, dims),
    st.builds("torch.movedim(x, {}, {})".format, some_dims, some_dims),
    st.builds("x.movedim({}, {})".format, dims, dims),
    st.builds("x.select({}, {})".format, dims, dims),
    st.builds("x.narrow({}, {}, {})".format, dims, dims, st.integers(-1, 3)),
    st.builds("torch.narrow_copy(x, {}, {}, {})".format, st.integers(0, 2), dims, st.integers(0, 3)),
    st.builds("x.diagonal({}, {}, {})".format, dims, dims, dims),
    st.builds("x.unfold({}, {}, {})".format, dims, st.integers(-1, 4), st.integers(0, 3)),
    st.builds("x.as_strided({}, {}, {})".format, counts, counts, st.sampled_from([None, -1, 0, 2, 50])),
    st.builds("x.view(torch.{})".format, st.sampled_from(["int32", "uint8", "float64", "complex64", "bool"])),
    st.sampled_from(["x.real", "x.imag", "x.conj()", "torch.view_as_real(x)"]),
    st.sampled_from(["torch.view_as_complex(x)", "x.resolve_conj()", "x.resolve_neg()"]),
    st.sampled_from(
        ["torch.atleast_1d(x)", "torch.atleast_2d(x)", "torch.atleast_3d(x)", "x.detach()", "x.data"]
    ),
    st.builds("x.split({}, {})".format, st.integers(-1, 4), dims),
    st.builds("x.split({}, {})".format, st.lists(st.integers(0, 3), max_size=3), dims),
    st.builds("x.chunk({}, {})".format, st.integers(0, 5), dims),
    st.builds("x.tensor_split({}, {})".format, st.integers(0, 5), dims),
    st.builds("x.tensor_split({}, {})".format, some_dims, dims),
    st.builds("x.unbind({})".format, dims),
    st.builds("torch.{}split(x, {})".format, st.sampled_from("hvd"), st.integers(1, 3)),
    st.builds("torch.{}_copy(x, 0)".format, st.sampled_from(["unbind", "unsqueeze", "squeeze"])),
    st.builds("torch.{}_copy(x)".format, st.sampled_from(["alias", "detach", "diagonal", "slice", "t"])),
)


@pytest.mark.may_raise(least=0.3)
@settings(max_examples=1500, deadline=None)
@given(call=CALLS, layout=layouts())
def test_every_view_of_every_layout(call, layout):
    # PyTorch lets a 0-dim tensor expand to sizes of -1, which then stand in its shape.
    assume(layout.shape or not call.startswith("x.expand") or "-1" not in call)
    check(call, x=layout)


@given(layout=layouts(shape=(2, 3), dtypes=("complex64", "float32")))
@settings(max_examples=50, deadline=None)
def test_conj_physical(layout):
    check("x.conj_physical()", x=layout)


STEPS = st.sampled_from(
    [
        ".t()",
        ".squeeze()",
        ".unsqueeze(1)",
        ".flatten(0, 1)",
        ".mT",
        ".conj()",
        ".imag",
        ".real",
        "._neg_view()",
    ]
)


@pytest.mark.may_raise(least=0.65)
@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEPS, max_size=4), layout=layouts(dtypes=("complex64",)))
def test_views_of_views(steps, layout):
    check("x" + "".join(steps), x=layout)


@pytest.mark.parametrize("dtype", ["complex64", "float32"])
@pytest.mark.parametrize("steps", ["", ".conj()", "._neg_view()"])
def test_conj_physical_in_place(steps, dtype):
    check(f"x{steps}.conj_physical_()", x=Layout((2, 3), (1, 2), dtype=dtype))


@pytest.mark.parametrize("steps", [".imag", ".conj().imag", ".real", ".conj().real"])
def test_parts_of_a_negative(steps):
    check("x._neg_view()" + steps, x=Layout((2, 3), (3, 1), dtype="complex64"))


MESSAGES = """
x.view(5, 5)  # raises
x.view(-1, -1)  # raises
x.view(-2, 12)  # raises
e.view(-1, 0)  # raises
x.transpose(0, 1).view(-1)  # raises
x.transpose(0, 5)  # raises
x.t()  # raises
x.expand(3)  # raises
x.expand(2, 3, 5)  # raises
x.expand(-1, 2, 3, 4)  # raises
x.permute(0, 1)  # raises
x.permute(0, 1, 1)  # raises
x.select(0, 5)  # raises
z.select(0, 0)  # raises
x.narrow(0, 1, 2)  # raises
x.narrow(0, -3, 1)  # raises
x.narrow(0, 0, -1)  # raises
z.narrow(0, 0, 1)  # raises
x.unfold(0, 3, 1)  # raises
x.unfold(0, -1, 1)  # raises
x.diagonal(0, 1, 1)  # raises
x.unsqueeze(4)  # raises
x.squeeze((0, 0))  # raises
x.flatten(2, 1)  # raises
x.unflatten(1, (2, 2))  # raises
x.unflatten(1, ())  # raises
x.movedim((0, 1), (1,))  # raises
x.movedim((0, 0), (1, 2))  # raises
x.movedim((0, 1), (1, 1))  # raises
x.H  # raises
x.select(0, 0).select(0, 0).mT  # raises
x.as_strided((5, 5), (5, 1))
x.as_strided((2, 2), (-1, 1))  # raises
x.as_strided((2, 2), (1,))  # raises
x.as_strided((2, 2), (1, 1), -1)  # raises
x.narrow(2, 1, 2).view(torch.float64)  # raises
x.transpose(1, 2).view(torch.uint8)  # raises
z.view(torch.uint8)  # raises
x.imag  # raises
torch.view_as_real(x)  # raises
torch.view_as_complex(x)  # raises
z.unbind()  # raises
x.split(0)  # raises
x.split(-1)  # raises
x.split([1, 1], 1)  # raises
z.split(1)  # raises
x.chunk(0)  # raises
x.tensor_split(0)  # raises
x.hsplit(2)  # raises
z.hsplit(1)  # raises
torch.broadcast_tensors(x, e)  # raises
torch.broadcast_tensors([x])  # raises
""".strip().splitlines()


X, Z, E = Layout((2, 3, 4), (12, 4, 1)), Layout((), ()), Layout((0, 3), (3, 1))


RETYPED = [  # sizes, strides, offset, dtype of a view of int32
    ((2, 2), (4, 1), 0, "int64"),
    ((2, 2), (3, 1), 0, "int64"),
    ((2, 4), (5, 1), 0, "int64"),
    ((1, 4), (3, 1), 0, "int64"),
    ((0, 4), (3, 1), 0, "int64"),
    ((2, 4), (6, 1), 1, "int64"),
    ((2, 4), (6, 1), 2, "int64"),
    ((4, 2), (1, 4), 0, "int64"),
    ((2, 3), (4, 1), 0, "int64"),
    ((2, 0), (3, 1), 0, "int64"),
    ((2, 4), (0, 1), 0, "int64"),
    ((), (), 0, "int64"),
    ((2, 2), (6, 1), 0, "complex128"),
    ((2, 4), (6, 1), 0, "complex128"),
    ((2, 4), (8, 1), 4, "complex128"),
    ((2, 3), (4, 2), 0, "int16"),
    ((2, 3), (5, 1), 3, "int16"),
    ((2, 4), (5, 1), 1, "float32"),
]


@pytest.mark.parametrize("sizes, strides, offset, dtype", RETYPED)
def test_views_of_other_dtypes_need_strides_and_offsets_that_divide(sizes, strides, offset, dtype):
    found = []
    for lib in (torch, weft):
        base = lib.arange(64, dtype=lib.int32).as_strided(sizes, strides, offset)
        try:
            view = base.view(getattr(lib, dtype))
            found.append((view.shape, view.stride(), view.storage_offset(), repr(view.tolist())))
        except RuntimeError as error:
            found.append(str(error).splitlines()[0])
    assert found[1] == found[0]


@pytest.mark.parametrize("expression", MESSAGES)
def test_error_messages(expression):
    check(expression, message=True, x=X, z=Z, e=E)


# Forms of arguments, keywords, several tensors, metadata in place.
FORMS = """
x.view(size=(24,))
x.view(dtype=torch.int32)
x.view(torch.tensor(2), 12)
x.view_as(y)
x.reshape(shape=(4, 6))
torch.reshape(x, (24,))
x.reshape_as(y)
x.permute(dims=(2, 0, 1))
torch.permute(x, (2, 0, 1))
x.expand(size=(2, 2, 3, 4))
z.expand_as(x)
x.broadcast_to((5, 2, 3, 4))
torch.broadcast_tensors(x, z, x.narrow(0, 0, 1))
torch.broadcast_tensors()
torch.broadcast_shapes((2,), 1, (3, 1))
torch.broadcast_shapes((-2,))  # raises
torch.atleast_1d(z, x)
torch.atleast_2d([z, x])
torch.atleast_3d()
x.squeeze(axis=0)
x.unsqueeze(axis=0)
torch.swapaxes(x, 0, axis1=1)
torch.swapdims(x, 0, dim1=1)
torch.moveaxis(x, 0, 1)
torch.linalg.diagonal(x)
x.narrow(0, torch.tensor(1), 1)
x.select(0, True)  # raises
x.transpose(0, 1.0)  # raises
x.transpose(0, True)  # raises
x.view(2.0, 12)  # raises
x.flatten(0.0)  # raises
torch.split(x, split_size_or_sections=2)
x.split(split_size=2, dim=1)
torch.split_with_sizes(x, [1, 2], 1)
x.tensor_split(torch.tensor([1, 3]), 2)
x.tensor_split(torch.tensor(3), dim=2)
x.tensor_split(torch.tensor([1.0]))  # raises
x.tensor_split(indices=(1,), dim=2)
x.tensor_split(sections=2, dim=2)
x.hsplit([1])
x.chunk(chunks=2, dim=-1)
torch.view_copy(x, (24,))
torch.view_copy(x, torch.int32)
torch.expand_copy(z, (2, 3))
torch.alias_copy(x, out=torch.empty(0))
torch.split_copy(x, 1)
torch.is_same_size(x, y)
x.is_set_to(x.view_as(x))
x.is_set_to(y)
torch.is_conj(x)
torch.detach(x)
x.clone().t_()  # raises
x.clone().transpose_(0, 1)
x.clone().swapaxes_(0, 1)
x.clone().swapdims_(0, 1)
x.unsqueeze(0).squeeze_(0)
x.clone().unsqueeze_(0)
x.clone().as_strided_((2,), (1,), 1)
x.clone().resize_(2, 2)
x.transpose(0, 1).resize_(3, 2, 4)
x.clone().resize_(2, 2, 2, 2, memory_format=torch.channels_last)
x.clone().resize_(2, 2, memory_format=torch.channels_last)  # raises
x.clone().resize_as_(z)
x.clone().set_()
x.clone().set_(z)
x.clone().set_(y.untyped_storage())
x.clone().set_(y.untyped_storage(), 1, (2, 2))
x.clone().set_(y.untyped_storage(), 1, (2, 2), (1, 2))
x.clone().set_(y, 1, (2, 2))  # raises
x.clone().set_(x.to(torch.int32))  # raises
x.clone().set_(y.untyped_storage(), -1, (2, 2))  # raises
""".strip().splitlines()


@pytest.mark.parametrize("expression", FORMS)
def test_forms_of_arguments(expression):
    check(expression, x=X, y=Layout((4, 6), (1, 4)), z=Z)


def test_resize_keeps_the_elements_and_moves_every_view():
    whole = weft.tensor([1.0, 2.0, 3.0])
    view = whole[1:]
    whole.resize_(1000)
    assert whole[:3].tolist() == [1, 2, 3]
    view[0] = 7
    assert whole[1] == 7
    assert view.untyped_storage() is whole.untyped_storage()


def test_data_swaps_the_memory():
    a, b = weft.zeros(3), weft.ones(2, 2)
    a.data = b
    assert a.shape == (2, 2) and a.untyped_storage() is b.untyped_storage()
    a.data[0, 0] = 5
    assert b[0, 0] == 5
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        a.data = 5


def test_the_parts_of_a_complex_tensor_can_be_assigned():
    a = weft.zeros(2, dtype=weft.complex64)
    a.real, a.imag = weft.tensor([1.0, 2.0]), weft.tensor([3.0, 4.0])
    assert a.tolist() == [1 + 3j, 2 + 4j]
    a.conj().imag.fill_(1.0)
    assert a.tolist() == [1 - 1j, 2 - 1j]


UNFIT = """
torch.ones(4).as_strided(2, (1,))  # raises
torch.ones(4).as_strided((2,), 1)  # raises
torch.ones(4).split_with_sizes(4)  # raises
torch.ones(4).unflatten(0, 4)  # raises
torch.rot90(torch.ones(2, 2), 1, 0)  # raises
torch.ones(4).reshape((True, 4))  # raises
torch.ones(4).reshape(4, True)
torch.ones(2, 2).permute((0, True))
torch.ones(2, 2).permute((True, 0))  # raises
torch.ones(2, 2).flip((True,))  # raises
torch.narrow_copy(torch.ones(2), "a", 0, 1)  # raises
torch.atleast_1d(None)  # raises
torch.ones(2).unbind("a")  # raises
torch.ones(2).softmax(0.0)  # raises
torch.ones(2, 2).movedim(0, [1])  # raises
torch.ones(2, 2).movedim([0], 1)  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


def test_copies_of_views_made_under_no_grad_have_no_history():
    matrix = weft.ones(2, 2, requires_grad=True)
    with weft.no_grad():
        copies = matrix.diag(), weft.t_copy(matrix), weft.diagonal_copy(matrix)
    assert not any(each.requires_grad for each in copies)
    assert matrix.diag().requires_grad


@pytest.mark.parametrize(
    "call",
    (
        "kron(x, x)", "kron(x, y)", "rot90(x)", "rot90(x, 3)", "quantile(x, 0.5)", "quantile(x, y[0], dim=1)",
        "matrix_power(x, 0)",
    ),
)  # fmt: skip
def test_results_in_memory_of_their_own_are_no_views(call):
    for graded in (False, True):
        for library in (torch, weft):
            tensors = {"x": library.ones(2, 2, requires_grad=graded), "y": library.tensor([[0.5, 0.25]])}
            found = eval(f"library.{call}", {"library": library, **tensors})
            assert not found._is_view() and found.detach_() is found, library


@pytest.mark.parametrize(
    ("what", "make"),
    [
        (r"self.dim\(\) cannot be 0", lambda t: t.zeros(3)[1]),
        (r"self.stride\(-1\) must be 1", lambda t: t.zeros(4, 4).t()),
        (r"self.size\(-1\) must be divisible by 2", lambda t: t.zeros(4, 4)[:, 1:]),
        (r"self.storage_offset\(\) must be divisible by 2", lambda t: t.zeros(4, 5)[:, 1:]),
        (r"self.stride\(0\) must be divisible by 2", lambda t: t.zeros(4, 5)[:, :4]),
    ],
)
def test_the_first_reason_why_a_view_of_another_dtype_is_refused(what, make):
    for t in (torch, weft):
        with pytest.raises(RuntimeError, match=what):
            make(t).view(t.float64)
