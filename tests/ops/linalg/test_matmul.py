"""Products of matrices and vectors against PyTorch."""

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_torch, to_weft

import weft

DTYPES = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.complex64,
)  # fmt: skip
SIZES = st.integers(0, 5)


def values(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 8 - 3).round(decimals=1).to(dtype)


@st.composite
def matrices(draw, *shape, dtype):
    """A tensor of this shape: contiguous, transposed, with gaps, expanded or conjugated."""
    layout = draw(st.sampled_from(("rows", "columns", "gaps", "permuted", "expanded", "conjugated")))
    if layout == "rows" or len(shape) < 2:
        return values(*shape, dtype=dtype)
    if layout == "columns":
        return values(*shape[:-2], shape[-1], shape[-2], dtype=dtype).mT
    if layout == "gaps":
        return values(*shape[:-1], 2 * shape[-1] + 1, dtype=dtype)[..., 1::2]
    if layout == "permuted":
        return values(*shape[::-1], dtype=dtype).permute(*reversed(range(len(shape))))
    if layout == "expanded":
        return values(*shape[:-2], 1, shape[-1], dtype=dtype).expand(shape)
    return values(*shape, dtype=dtype).conj()


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(DTYPES), SIZES, SIZES, SIZES, st.integers(0, 2), st.integers(0, 2))
def test_matmul_of_all_dims_and_strides(data, dtype, n, k, m, left_batch, right_batch):
    batch = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
    left = (*batch[2 - left_batch :], *((n, k) if left_batch or data.draw(st.booleans()) else (k,)))
    right = (*batch[2 - right_batch :], *((k, m) if right_batch or data.draw(st.booleans()) else (k,)))
    check("matmul", data.draw(matrices(*left, dtype=dtype)), data.draw(matrices(*right, dtype=dtype)))


@settings(max_examples=100, deadline=None)
@given(
    st.data(),
    st.sampled_from((torch.float64, torch.complex128, torch.int64, torch.uint8, torch.bool)),
    st.sampled_from((1, 0, 2, 0.5)),
    st.sampled_from((1, 0, -3)),
    st.sampled_from(("addmm", "addmv", "addr", "baddbmm", "addbmm")),
)
def test_products_added_to_something(data, dtype, beta, alpha, name):
    n, k, m, b = (data.draw(st.integers(1, 4)) for _ in range(4))
    operands, result = {
        "addmm": (((n, k), (k, m)), (n, m)),
        "addmv": (((n, k), (k,)), (n,)),
        "addr": (((n,), (m,)), (n, m)),
        "baddbmm": (((b, n, k), (b, k, m)), (b, n, m)),
        "addbmm": (((b, n, k), (b, k, m)), (n, m)),
    }[name]
    if not dtype.is_floating_point:
        beta = int(beta)
    input = values(*(1 if data.draw(st.booleans()) else size for size in result), dtype=dtype)
    tensors = [data.draw(matrices(*shape, dtype=dtype)) for shape in operands]
    check(name, input, *tensors, beta=beta, alpha=alpha)
    check(f"{name}_", values(*result, dtype=dtype), *tensors, beta=beta, alpha=alpha, method=True)


def test_narrow_floats_are_added_before_they_are_rounded():
    a, b, c = (
        torch.rand(8, 8, generator=torch.Generator().manual_seed(seed)).bfloat16() for seed in range(3)
    )
    check("addmm", c, a, b, beta=2, alpha=3)
    exact = (2 * c.double() + 3 * (a.double() @ b.double())).bfloat16()
    assert torch.equal(to_torch(weft.addmm(*map(to_weft, (c, a, b)), beta=2, alpha=3)), exact)


def test_beta_zero_ignores_nan():
    check("addmm", torch.full((2, 2), float("nan")), torch.eye(2), torch.eye(2), beta=0)


@pytest.mark.parametrize("dtype", (torch.int8, torch.uint8, torch.int32, torch.int64))
@pytest.mark.parametrize("largest", (3, 2**10, 2**40))
def test_integer_products_are_exact_and_wrap_around(dtype, largest):
    info = np.iinfo(str(dtype).removeprefix("torch."))
    low, high = max(info.min, -largest), min(info.max, largest)
    a, b = torch.randint(low, high, (40, 50), dtype=dtype), torch.randint(low, high, (50, 30), dtype=dtype)
    check("mm", a, b)
    check("mm", a[::2], b[:, ::3])


@pytest.mark.parametrize("bits", [24, 53])
def test_integer_products_are_exact_where_floats_begin_to_round(bits):
    """All sums are odd and below 2 * 2**bits, where the float with `bits` bits has even numbers only."""
    largest = int((1.9 * 2**bits / 65) ** 0.5)
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.integers(largest - 10, largest, (65, 65)) | 1) for _ in range(2))
    check("mm", a, b)


def test_narrow_floats_round_once():
    a, b = torch.randn(64, 300).bfloat16(), torch.randn(300, 64).bfloat16()
    exact = (a.double() @ b.double()).bfloat16()
    got = to_torch(to_weft(a) @ to_weft(b))
    assert (got != exact).float().mean() < 0.01  # a float32 sum may lie on the other side of a boundary


def test_a_result_larger_than_an_element_of_an_array_library():
    a = weft.ones(3, 2, dtype=weft.float8_e4m3fn)
    assert (a @ a.T).to(weft.float32).tolist() == [[2.0] * 3] * 3
    c = weft.ones(2, 2, dtype=weft.complex32)
    assert (c @ c).to(weft.complex64).tolist() == [[2 + 0j] * 2] * 2


SHAPES = [(), (3,), (4,), (2, 3), (3, 4), (3, 2), (2, 2, 3), (2, 3, 4), (3, 3, 4), (2, 1, 2, 3)]


@pytest.mark.refuses(
    {
        "mm": 97,
        "bmm": 99,
        "mv": 98,
        "dot": 98,
        "vdot": 98,
        "matmul": 74,
        "inner": 48,
        "outer": 96,
        "tensordot": 87,
    }
)
@pytest.mark.parametrize(
    "name", ("mm", "bmm", "mv", "dot", "vdot", "matmul", "inner", "outer", "kron", "tensordot")
)
def test_every_pair_of_shapes_gives_the_result_or_the_error_of_torch(name):
    for first in SHAPES:
        for second in SHAPES:
            check(name, values(*first), values(*second))


@pytest.mark.refuses(
    [
        "mm-first1", "mm-first2", "mm-first3", "matmul-first1", "matmul-first2", "matmul-first3",
        "inner-first1", "inner-first2", "inner-first3",
    ]
)  # fmt: skip
@pytest.mark.parametrize("first", [torch.float32, torch.int64, torch.bool, torch.complex64])
@pytest.mark.parametrize("name", ("mm", "matmul", "inner", "outer", "kron"))
def test_mixed_dtypes(name, first):
    shape = (2,) if name == "outer" else (2, 2)
    check(name, values(*shape).to(first), values(*shape, dtype=torch.float32))


MESSAGES = [
    lambda t: t.mm(t.ones(2, 3), t.ones(4, 5)),
    lambda t: t.mm(t.ones(2), t.ones(4, 5)),
    lambda t: t.mm(t.ones(2, 2), t.ones(2, 2).long()),
    lambda t: t.bmm(t.ones(2, 3, 4), t.ones(3, 4, 5)),
    lambda t: t.mv(t.ones(2, 3), t.ones(2)),
    lambda t: t.dot(t.ones(2), t.ones(3)),
    lambda t: t.matmul(t.ones(2, 3, 4), t.ones(3, 5)),
    lambda t: t.matmul(t.ones(()), t.ones(3)),
    lambda t: t.matmul(t.ones(3), 3),
    lambda t: t.mm(t.ones(2, 2).bool(), t.ones(2, 2).bool()),
    lambda t: t.addmm(t.ones(3), t.ones(2, 3), t.ones(3, 4)),
    lambda t: t.outer(t.ones(2, 2), t.ones(2)),
    lambda t: t.tensordot(t.ones(2, 3), t.ones(2, 4), 1),
    lambda t: t.linalg.cross(t.ones(2, 2), t.ones(2, 2)),
    lambda t: t.linalg.multi_dot([t.ones(3)]),
    lambda t: t.nn.functional.linear(t.ones(2, 3), t.ones(4, 5)),
]


@pytest.mark.parametrize("call", MESSAGES)
def test_the_first_line_of_an_error_is_that_of_torch(call):
    with pytest.raises(Exception) as theirs:
        call(torch)
    with pytest.raises(theirs.type) as ours:
        call(weft)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]


def test_the_operator():
    a, b = weft.ones(2, 3), weft.ones(3, 2)
    assert (a @ b).tolist() == [[3.0, 3.0]] * 2
    with pytest.raises(TypeError):
        a @ 2
    before, a = a, a @ b
    before @= b
    assert before.shape == a.shape  # @= makes a new tensor, as torch's does


@pytest.mark.refuses({"1": 1, "2": 3, "dims4": 2, "dims6": 3, "dims7": 3, "3": 3, "-1": 3})
@pytest.mark.parametrize(
    "dims", [0, 1, 2, ([1, 0], [0, 1]), ([-1], [1]), ([], []), ([0], [5]), ([0, 0], [0, 1]), 3, -1]
)
def test_tensordot(dims):
    check("tensordot", values(3, 4, 5), values(4, 3, 5).permute(0, 1, 2), dims)
    check("tensordot", values(4, 3), values(3, 4), dims)
    check("tensordot", values(4, 1), values(3, 4), dims)


def test_kron_of_different_dims():
    check("kron", values(2, 3), values(4, 1, 2))
    check("kron", values(2, 3), values(2, dtype=torch.int64))


@pytest.mark.refuses({"0": 1, "1": 1})
@pytest.mark.filterwarnings("ignore:Using torch.cross")
@pytest.mark.parametrize("dim", (None, 0, 1, -1))
def test_cross(dim):
    check("cross", values(3, 3), values(3, 3).t(), dim)
    check("cross", values(2, 3), values(1, 3), dim)
    check("linalg.cross", values(3, 1, 3), values(1, 4, 3), dim=dim or -1)


@pytest.mark.refuses(1)
def test_results_in_given_tensors():
    a, b = values(3, 4), values(4, 2)
    check("matmul", a, b, out=torch.empty(0, dtype=torch.float64))
    check("matmul", a, b, out=torch.empty(2, 3, dtype=torch.float64).t())
    check("mm", a, b, out=torch.empty(3, 2, dtype=torch.int64))


def test_overflow_and_nan_come_without_warnings(recwarn):
    huge = weft.full((8, 8), 3e38)
    (huge @ huge) @ (weft.zeros(8, 8) @ huge - huge)
    assert not recwarn.list


def test_meta_tensors_only_have_a_shape():
    result = weft.empty(2, 3, device="meta") @ weft.empty(3, 4, device="meta")
    assert result.is_meta and result.shape == (2, 4)


def test_chain_matmul_warns_and_multiplies():
    tensors = [values(2, 3), values(3, 5), values(5, 4)]
    with pytest.warns(UserWarning, match="deprecated"):
        got = weft.chain_matmul(*map(to_weft, tensors))
    assert_same(got, torch.linalg.multi_dot(tensors))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("expression", [
    "a.conj() @ b", "a @ b.conj()", "a.conj() @ b.conj()", "a.mH @ b", "a @ b.mH", "a.conj() @ b[0]",
    "a[0].conj() @ b", "lib.bmm(a[None].conj(), b[None])", "lib.addmm(a, a.conj(), b)", "lib.mv(a.conj(), b[0].conj())",
    "lib.dot(a[0].conj(), b[0])", "lib.vdot(a[0], b[0])", "lib.outer(a[0].conj(), b[0])", "a[None].mH @ b",
    "a.imag @ b.conj().imag", "a.conj().imag @ b.real",
])  # fmt: skip
def test_pending_conjugation_and_negation(expression, dtype):
    values = np.random.default_rng(0).normal(size=(4, 3, 3))
    found = []
    for lib in (torch, weft):
        a, b = (lib.from_numpy(values[k] + 1j * values[k + 1]).to(getattr(lib, dtype)) for k in (0, 2))
        found.append(eval(expression, {"lib": lib, "a": a, "b": b}).resolve_conj().resolve_neg().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4 if dtype == "complex64" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64"])
def test_pending_negation_of_a_contiguous_tensor(dtype):
    a, b = (weft.arange(9.0 + k)[k:].view(3, 3).to(getattr(weft, dtype)) for k in (0, 1))
    assert ((-a)._neg_view() @ b).equal(a @ b)
    assert (a @ (-b)._neg_view()).equal(a @ b)


def test_rows_that_overlap():
    """BLAS takes no rows that begin within the row before."""
    x, b = torch.arange(20.0), torch.arange(9.0).reshape(3, 3)
    for strides in ((1, 1), (2, 1), (1, 2), (3, 1), (2, 2)):
        a = x.as_strided((3, 3), strides)
        for left, right in ((a, b), (b, a), (a, a), (a.t(), b)):
            check("mm", left, right)
        check("mv", a, b[0])


UNFIT = """
torch.linalg.cross(torch.ones(2, 3) > 0, torch.ones(2, 3))  # raises
torch.linalg.cross(torch.ones(2, 3), torch.ones(2, 3) > 0)  # raises
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), dims=([None], [0]))  # raises
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), dims=([0.0], [0]))  # raises
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), dims=(0, 1))  # raises
torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), dims=(0, [1]))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


STACKS_OF_BOOL = """
torch.ones(2, 3, dtype=torch.bool) @ torch.ones(2, 3, 1)  # raises
torch.ones(2, 2, 3, dtype=torch.bool) @ torch.ones(2, 3, 1)  # raises
torch.ones(2, 2, 3, dtype=torch.bool) @ torch.ones(3, 1)  # raises
torch.ones(2, 2, 3, dtype=torch.bool) @ torch.ones(2, 3, 1, dtype=torch.bool)  # raises
torch.ones(2, 2, 3) @ torch.ones(2, 3, 1, dtype=torch.bool)  # raises
torch.bmm(torch.ones(2, 2, 3, dtype=torch.bool), torch.ones(2, 3, 1))  # raises
torch.bmm(torch.ones(2, 2, 3, dtype=torch.bool), torch.ones(2, 2, 1))  # raises
torch.baddbmm(torch.ones(2, 2, 1), torch.ones(2, 2, 3, dtype=torch.bool), torch.ones(2, 3, 1))  # raises
"""


@pytest.mark.parametrize("expression", lines(STACKS_OF_BOOL))
def test_stacks_of_bool(expression):
    """PyTorch looks for a kernel before it compares the dtypes."""
    check_expression(expression)


def test_chain_matmul_of_one_matrix_writes_into_out():
    with pytest.warns(UserWarning, match="deprecated"):
        found = weft.chain_matmul(weft.eye(2), out=(out := weft.empty(0)))
    assert found is out and out.tolist() == [[1.0, 0.0], [0.0, 1.0]]


STACKS_WITHOUT_DIMS = """
torch.baddbmm(torch.ones(()), torch.ones(2, 2), torch.ones(1, 2))  # raises
torch.baddbmm(torch.ones(3, 3, 3), torch.ones(2), torch.ones(1, 2, 2))  # raises
torch.baddbmm(torch.ones(2), torch.ones(2, 2, 2, 2), torch.ones(1, 2, 2))  # raises
torch.addbmm(torch.ones(()), torch.ones(2, 2), torch.ones(1, 2))  # raises
torch.addbmm(torch.ones(3, 3, 3), torch.ones(2, 2), torch.ones(1, 2, 2))  # raises
torch.addbmm(torch.ones(2), torch.ones(2, 2, 2, 2), torch.ones(1, 2, 2))  # raises
"""


@pytest.mark.parametrize("expression", lines(STACKS_WITHOUT_DIMS))
def test_stacks_without_dims(expression):
    """PyTorch makes the sizes of the result first."""
    check_expression(expression)


KRON_IS_NO_VIEW = """
torch.kron(torch.eye(2), torch.ones(1, 2)).detach_()
torch.kron(torch.eye(2), torch.ones(1, 2))._is_view()
torch.kron(torch.eye(2, requires_grad=True), torch.ones(1, 2)).detach_()
"""


@pytest.mark.parametrize("expression", lines(KRON_IS_NO_VIEW))
def test_kron_is_no_view(expression):
    """The result of kron may be detached in place."""
    check_expression(expression)


@pytest.mark.parametrize("name", ["mm", "matmul"])
def test_out_is_written_directly_or_through_a_copy(name):
    function, theirs = getattr(weft, name), getattr(torch, name)
    a, b = torch.rand(40, 30), torch.rand(30, 40)
    x, y = to_weft(a), to_weft(b)
    wanted = theirs(a, b)
    made = weft.zeros(40, 40)
    before, waiting = made._version, made + 1  # reads what is overwritten
    assert function(x, y, out=made) is made and made._version > before
    assert_same(made, wanted)
    assert (waiting == 1).all()
    for out in (weft.empty(40, 40).t(), weft.empty(0), weft.empty(40, 40, dtype=weft.float64)):
        assert_same(function(x, y, out=out).contiguous(), wanted.to(to_torch(out).dtype))
    square = torch.rand(40, 40)
    own = to_weft(square)
    assert_same(function(own, own, out=own), theirs(square, square))
    needed = to_weft(square).requires_grad_()
    with pytest.raises(RuntimeError, match="automatic differentiation"):
        function(needed, x, out=made)
    with pytest.raises(RuntimeError):
        function(x, x, out=made)


@pytest.mark.parametrize("library", [torch, weft])
@pytest.mark.parametrize(("beta", "alpha"), [(2.0, 1), (1, 2.0), (True, 1), (1, False)])
def test_addr_refuses_factors_of_a_higher_category(library, beta, alpha):
    vector = library.ones(2, dtype=library.int32)
    with pytest.raises(RuntimeError, match="must not be a floating point number|only supported for Boolean"):
        library.addr(library.ones(2, 2, dtype=library.int32), vector, vector, beta=beta, alpha=alpha)
