import math

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import to_torch, to_weft
from twins import check, counting, tensors

import weft

pytestmark = pytest.mark.filterwarnings("ignore")


ACCUMULATING = ("float32", "float64", "int64", "uint8", "bool", "complex64", "bfloat16")


@st.composite
def index_along(draw, base, dim, low=0, unique=False):
    """An index tensor for scatter and gather: no larger than `base` in any dim but `dim`."""
    sizes = [draw(st.integers(0, size)) for size in base.shape]
    size, dim = 1, dim % max(base.ndim, 1)
    if base.ndim:
        size = base.shape[dim]
        sizes[dim] = draw(st.integers(0, size if unique else 4)) if size else 0
    if unique:  # every line along `dim` holds different numbers
        line = torch.tensor(draw(st.permutations(range(size)))[: sizes[dim]], dtype=torch.int64)
        return line.reshape([-1 if d == dim else 1 for d in range(base.ndim)]).expand(sizes).contiguous()
    count = int(np.prod(sizes))
    values = draw(st.lists(st.integers(low, size - 1), min_size=count, max_size=count)) if count else []
    return torch.tensor(values, dtype=torch.int64).reshape(sizes)


def any_dim(base):
    return st.integers(-max(base.ndim, 1), max(base.ndim, 1) - 1)


@settings(max_examples=150, deadline=None)
@given(st.data(), tensors(expanded=False, dtypes=ACCUMULATING))
def test_scatter_add_and_scatter_reduce(data, base):
    dim = data.draw(any_dim(base))
    index = data.draw(index_along(base, dim))
    source = counting(index.shape, str(base.dtype).removeprefix("torch."))
    check(lambda lib, b, i, s: b.scatter_add(dim, i, s), base, index, source)
    if base.dtype not in (torch.bool, torch.complex64, torch.bfloat16):
        reduce = data.draw(st.sampled_from(("sum", "prod", "mean", "amax", "amin")))
        include = data.draw(st.booleans())
        check(
            lambda lib, b, i, s: b.scatter_reduce(dim, i, s, reduce, include_self=include),
            base,
            index,
            source,
        )


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax"])
@pytest.mark.parametrize("include_self", [False, True])
def test_scatter_reduce_reads_an_index_or_source_in_its_own_memory_first(reduce, include_self):
    """With gaps, where PyTorch does not notice and may write something else; without, both refuse it (test_overlap.py)."""
    options = {"reduce": reduce, "include_self": include_self}
    memory, values = weft.tensor([1, 9, 2, 9, 3, 9, 0, 9]), weft.tensor([7, 7, 8, 9])
    target, index = memory[::2], memory[::2]
    expected = target.scatter_reduce(0, index, values, **options)
    assert target.scatter_reduce_(0, index, values, **options).tolist() == expected.tolist()
    memory, index = weft.arange(1, 13)[::2], weft.tensor([4, 3, 2, 1, 0])
    expected = memory[1:].scatter_reduce(0, index, memory[:-1], **options)
    assert memory[1:].scatter_reduce_(0, index, memory[:-1], **options).tolist() == expected.tolist()


@pytest.mark.parametrize("value", [2.0, [3.0, 4.0]])
def test_scatter_that_multiplies_has_no_derivative(value):
    """PyTorch has none either, also not for "add"."""
    for lib in (torch, weft):
        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        source = value if isinstance(value, float) else lib.tensor(value)
        with pytest.raises(RuntimeError, match=r"derivative (for|of) .*scatter.* is not implemented"):
            x.scatter(0, lib.tensor([0, 2]), source, reduce="multiply").sum().backward()


@settings(max_examples=150, deadline=None)
@given(st.data(), tensors(expanded=False, min_dims=1))
def test_scatter(data, base):
    dim = data.draw(any_dim(base))
    index = data.draw(index_along(base, dim, unique=True))
    source = counting(index.shape)
    check(lambda lib, b, i, s: b.scatter(dim, i, s), base, index, source)
    check(lambda lib, b, i: b.scatter(dim, i, 2.5), base, index)
    check(lambda lib, b, i: b.scatter(dim, i, 2, reduce="multiply"), base, index)
    check(lambda lib, b, i, s: b.scatter_(dim, i, s), base, index, source)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "write",
    [
        lambda lib, t, i, v: t.scatter_(0, i, v),
        lambda lib, t, i, v: t.scatter_add_(0, i, v),
        lambda lib, t, i, v: t.scatter_reduce_(0, i, v, "amax"),
        lambda lib, t, i, v: t.index_add_(0, i, v),
        lambda lib, t, i, v: t.index_copy_(0, i, v),
        lambda lib, t, i, v: t.index_fill_(0, i, 7.0),
        lambda lib, t, i, v: t.index_reduce_(0, i, v, "prod"),
        lambda lib, t, i, v: t.put_(i, v),
        lambda lib, t, i, v: t.index_put_((i,), v),
    ],
)
@pytest.mark.parametrize("bad", [4, -5, 2**40])
def test_an_index_out_of_range_raises_and_writes_nothing(write, bad):
    base, index, value = torch.zeros(4), torch.tensor([0, 1, bad]), torch.ones(3)
    check(write, base, index, value)
    ours = weft.zeros(4)
    with pytest.raises((IndexError, RuntimeError)):
        write(weft, ours, weft.tensor([0, 1, bad]), weft.ones(3))
    assert ours.tolist() == [0.0] * 4


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "float16"])
@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
def test_identities_without_self(dtype, reduce):
    base = torch.tensor([1, 1, 0]).to(getattr(torch, dtype))
    source = torch.tensor([0, 1, 1]).to(getattr(torch, dtype))
    index = torch.tensor([0, 0, 2])
    check(lambda lib, b, i, s: b.scatter_reduce(0, i, s, reduce, include_self=False), base, index, source)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_an_empty_index_reduces_nothing(dtype, reduce):
    """Also the extrema of complex numbers, which have no order."""
    base, empty = torch.ones(3, 2, dtype=dtype), torch.zeros(0, 2, dtype=dtype)
    index = torch.zeros(0, 2, dtype=torch.int64)
    for include in (False, True):
        check(
            lambda lib, b, i, s, include=include: b.scatter_reduce(0, i, s, reduce, include_self=include),
            base,
            index,
            empty,
        )


def test_extrema_keep_nan():
    base, source = torch.tensor([1.0, float("nan"), 3.0]), torch.tensor([float("nan"), 2.0, 5.0])
    for reduce in ("amax", "amin"):
        check(lambda lib, b, s, r=reduce: b.scatter_reduce(0, lib.tensor([0, 1, 2]), s, r), base, source)


def test_the_source_may_lie_in_the_target():
    t = weft.tensor([1, 2, 3, 4, 5, 6])
    t.scatter_add_(0, weft.tensor([2, 1, 0]), t[::2])
    assert t.tolist() == [6, 5, 4, 4, 5, 6]
    t = weft.tensor([4, 1, 2, 3, 0, 5])
    t.index_copy_(0, t[::2], weft.tensor([7, 8, 9]))
    assert t.tolist() == [9, 1, 8, 3, 7, 5]


def _empty_index(library):
    return library.tensor([], dtype=library.int64)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.zeros(()).scatter_add(0, t.tensor(0), t.ones(0)),
        lambda t: t.zeros(()).scatter(0, t.tensor(0), t.ones(0)),
        lambda t: t.zeros(3).scatter(0, t.tensor(0), t.ones(0)),
        lambda t: t.zeros(()).scatter_reduce(0, t.tensor(0), t.ones(0), "sum"),
        lambda t: t.zeros(3).scatter_reduce(0, t.tensor(0), t.ones(0), "amax"),
        lambda t: t.zeros(3).scatter(0, t.tensor([0, 1]), t.tensor(5.0)),
        lambda t: t.zeros(3).scatter_add(0, t.tensor([0, 1]), t.tensor(5.0)),
        lambda t: t.zeros(3).scatter_add(0, t.tensor([1]), t.tensor(5.0)),
        lambda t: t.zeros(3, 3).scatter(0, t.tensor([[0]]), t.tensor(5.0)),
        lambda t: t.zeros(3, 3).scatter(0, t.tensor([[0]]), t.ones(1)),
        lambda t: t.zeros(3).scatter(0, t.tensor(1), t.ones(2)),
        lambda t: t.zeros(3).scatter(0, _empty_index(t), t.ones(0)),
        lambda t: t.tensor(5.0).index_fill(0, _empty_index(t), 7.0),
        lambda t: t.tensor(5.0).index_fill(0, t.tensor([0, 0]), 7.0),
        lambda t: t.tensor(5.0).index_fill(0, t.tensor([0, 1]), 7.0),
        lambda t: t.tensor(5.0).index_copy(0, _empty_index(t), t.ones(0)),
        lambda t: t.tensor(5.0).index_copy(0, t.tensor([0, 0]), t.tensor([1.0, 2.0])),
        lambda t: t.tensor(5.0).index_copy(0, t.tensor(0), t.ones(0)),
        lambda t: t.tensor(5.0).index_add(0, _empty_index(t), t.ones(0)),
        lambda t: t.tensor(5.0).index_add(0, t.tensor(0), t.ones(0)),
        lambda t: t.tensor(5.0).index_select(0, _empty_index(t)),
        lambda t: t.ones(0).index_select(0, t.tensor(0)),
        lambda t: t.tensor(5.0).gather(0, _empty_index(t)),
        lambda t: t.ones(0).gather(0, t.tensor(0)),
        lambda t: t.tensor(5.0).take(_empty_index(t)),
        lambda t: t.ones(0).take(t.tensor(0)),
        lambda t: t.tensor(5.0).put_(_empty_index(t), t.ones(0)),
        lambda t: t.tensor(5.0).put_(t.tensor(0), t.ones(0)),
    ],
)
def test_operands_without_dimensions_or_elements(call):
    outcomes = []
    for library in (weft, torch):
        try:
            outcomes.append(call(library).tolist())
        except Exception as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]


UNFIT = """
torch.ones(10, 5).scatter(0, torch.zeros(5, 5).long(), torch.ones(0))  # raises
torch.ones(10, 5).scatter(0, torch.zeros(5, 5).long(), torch.ones(2))  # raises
torch.ones(10, 5).scatter(0, torch.zeros(5, 5).long(), torch.ones(5))  # raises
torch.ones(10, 5).scatter_reduce(0, torch.zeros(5, 5).long(), torch.ones(0), "sum")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


ORDER_OF_COMPLEX_NUMBERS = """
torch.zeros(2, dtype=torch.complex64).scatter_reduce(0, torch.tensor([0, 1]), torch.zeros(2, dtype=torch.complex64), "amax")  # raises
torch.zeros(2, dtype=torch.complex64).scatter_reduce(0, torch.tensor([0, 1]), torch.zeros(2, dtype=torch.complex64), "amin", include_self=False)  # raises
torch.zeros(2, dtype=torch.complex64).scatter_reduce(0, torch.tensor([], dtype=torch.int64), torch.zeros(2, dtype=torch.complex64), "amin")
torch.zeros(2, dtype=torch.complex64).index_reduce(0, torch.tensor([0, 1]), torch.zeros(2, dtype=torch.complex64), "amin")  # raises
torch.zeros(2, dtype=torch.complex64).index_reduce(0, torch.tensor([0, 1]), torch.zeros(2, dtype=torch.complex64), "amax", include_self=False)  # raises
"""


@pytest.mark.parametrize("expression", lines(ORDER_OF_COMPLEX_NUMBERS))
def test_order_of_complex_numbers(expression):
    """Complex numbers have no largest one, which matters only where there are elements."""
    check_expression(expression)


REFUSED_REDUCTIONS = """
torch.zeros(2, dtype=torch.bool).scatter_reduce(0, torch.tensor([0, 1]), torch.zeros(2, dtype=torch.bool), "mean")  # raises
torch.zeros(2, dtype=torch.bool).scatter_reduce(0, torch.tensor([], dtype=torch.int64), torch.zeros(2, dtype=torch.bool), "mean")  # raises
torch.zeros(2, dtype=torch.bool).scatter_reduce(0, torch.tensor([0, 1]), torch.zeros(2, dtype=torch.bool), "sum")
torch.zeros(2, 0, requires_grad=True).scatter_reduce_(2, torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, 0), "sum")  # raises
"""


@pytest.mark.parametrize("expression", lines(REFUSED_REDUCTIONS))
def test_refused_reductions(expression):
    """No mean of bools; leaves are refused before dims."""
    check_expression(expression)


def test_the_gradient_of_a_product_with_a_zero_keeps_nan():
    gradients = []
    for library in (torch, weft):
        x = library.tensor([0.0, 5.0, -2.0, 2.0], requires_grad=True)
        product = x.scatter_reduce(0, library.tensor([1, 1, 0, 2]), x, "prod")
        product.backward(library.tensor([math.nan, math.nan, 1.0, 1.0]))
        gradients.append(x.grad.tolist())
    np.testing.assert_array_equal(*gradients)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("target", [[2.0, 3.0], [0.0, 3.0]])
def test_the_gradient_of_a_product_with_a_zero_has_a_gradient(target, include_self):
    found = []
    for library in (torch, weft):
        x = library.tensor(target, requires_grad=True)
        values = library.tensor([0.0, 5.0, -2.0, 3.0], requires_grad=True)
        weights = library.tensor([1.0, 2.0], requires_grad=True)
        index = library.tensor([0, 0, 0, 1])
        product = x.scatter_reduce(0, index, values, "prod", include_self=include_self)
        first = library.autograd.grad(product, (x, values), weights, create_graph=True)
        total = sum((each * library.arange(1.0, 1 + len(each))).sum() for each in first)
        second = library.autograd.grad(total, (x, values, weights))
        found.append([each.tolist() for each in (*first, *second)])
    np.testing.assert_allclose(*map(np.concatenate, found), rtol=1e-6)


def test_the_gradient_of_a_product_with_two_zeros_has_a_gradient():
    def function(x, values):
        return x.scatter_reduce(0, weft.tensor([0, 0, 0, 1]), values, "prod")

    x = weft.tensor([2.0, 3.0], dtype=weft.float64, requires_grad=True)
    values = weft.tensor([0.0, 0.0, -2.0, 0.0], dtype=weft.float64, requires_grad=True)
    assert weft.autograd.gradgradcheck(function, (x, values))


@pytest.mark.parametrize("write", ["scatter_reduce_", "index_reduce_"])
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax"])
def test_the_gradient_of_a_reduction_through_a_view(write, reduce):
    gradients = []
    for library in (torch, weft):
        x, values = (library.tensor(given, requires_grad=True) for given in ([1.0, 2.0, 3.0], [4.0, 5.0]))
        base = x * 2
        getattr(base[1:], write)(0, library.tensor([0, 0]), values, reduce)
        base.backward(library.tensor([1.0, 2.0, 3.0]))
        gradients.append([x.grad.tolist(), values.grad.tolist()])
    assert gradients[0] == gradients[1]


WRITES = {
    "rows": lambda t, i, v: t.scatter_add_(1, i, v),
    "columns": lambda t, i, v: t.scatter_add_(0, i, v),
    "replaced": lambda t, i, v: t.scatter_(0, i, v),
    "slices": lambda t, i, v: t.index_add_(0, i[0], v[: i.shape[1]]),
    "columns of slices": lambda t, i, v: t.t().index_add_(1, i[:, 0], v.t()),
    "index": lambda t, i, v: t.index_put_((i[:, 0],), v, accumulate=True),
    "transposed": lambda t, i, v: t.t().scatter_add_(0, i, v),
    "windows": lambda t, i, v: t.as_strided((300, 200), (150, 1)).index_put_((i[:, 0],), v, accumulate=True),
}


@pytest.mark.parametrize("name", WRITES)
def test_many_writes_to_one_element_keep_their_order_on_all_threads(name):
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(0, 200, (300, 200), generator=generator)
    values = torch.rand(300, 200, generator=generator)
    expected = WRITES[name](torch.zeros(300, 200), index, values)
    before, results = weft.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            weft.set_num_threads(threads)
            target = weft.zeros(300, 200 + threads)[:, :200] if name != "windows" else weft.zeros(300, 200)
            results.append(WRITES[name](target, to_weft(index), to_weft(values)))
    finally:
        weft.set_num_threads(before)
    assert all(each.equal(results[0]) for each in results)
    torch.testing.assert_close(to_torch(results[0]), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, t: t.scatter_(-3, lib.tensor([[0, 1]]), t),
        lambda lib, t: t.scatter_add_(2, lib.tensor([[0, 1]]), t),
        lambda lib, t: t[0, 0].index_add_(0, lib.tensor([], dtype=lib.int64), t[0, 0]),
        lambda lib, t: t.index_copy_(5, lib.tensor([0, 1]), t),
    ],
)
def test_a_wrong_dim_is_told_before_shared_memory(call):
    for lib in (torch, weft):
        with pytest.raises(IndexError):
            call(lib, lib.ones(2, 2))
