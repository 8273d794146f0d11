"""sort, argsort, msort, topk, kthvalue, median, nanmedian and mode against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_torch, to_weft

import weft
from weft.ops.order.sorting import SHORT_ROW

ORDERED = ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


@st.composite
def samples(draw, dtypes=ORDERED, min_size=0, nan=True):
    """A tensor with many equal elements, some NaN, permuted or not; and one of its dims."""
    shape = draw(st.lists(st.integers(min_size, 5), max_size=3))
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(-4, 5, shape, generator=generator).to(
        getattr(torch, draw(st.sampled_from(dtypes)))
    )
    if nan and values.is_floating_point():
        values[torch.rand(shape, generator=generator) < 0.2] = float("nan")
        values[torch.rand(shape, generator=generator) < 0.2] = -0.0
    order = draw(st.permutations(range(len(shape))))
    dim = draw(st.integers(-len(shape), len(shape) - 1)) if shape else draw(st.sampled_from([0, -1]))
    return values.permute(order), dim


def check_selected(name, tensor, dim, *arguments, **options):
    """The same values as torch, and indices that select them (which of several equal ones is free)."""
    got = getattr(weft, name)(to_weft(tensor), *arguments, dim=dim, **options)
    expected = getattr(torch, name)(tensor, *arguments, dim=dim, **options)
    assert_same(got.values, expected.values, name)
    if tensor.dim() and not options.get("keepdim", True):
        dim %= tensor.dim()
        got = got.values.unsqueeze(dim), got.indices.unsqueeze(dim)
    if tensor.dim():
        chosen = tensor.gather(dim, to_torch(got[1]))
        torch.testing.assert_close(to_torch(got[0]), chosen, rtol=0, atol=0, equal_nan=True)


@settings(max_examples=60, deadline=None)
@given(samples((*ORDERED, "bool")), st.booleans())
def test_sort_is_stable(sample, descending):
    tensor, dim = sample
    check("sort", tensor, dim=dim, descending=descending, stable=True)
    check("argsort", tensor, dim=dim, descending=descending, stable=True)


@pytest.mark.parametrize("dtype", (*ORDERED, "bool", "uint16", "uint32", "uint64"))
@pytest.mark.parametrize("descending", (False, True))
def test_rows_longer_than_those_sorted_by_comparison(dtype, descending):
    values = torch.randint(0, 300, (2, SHORT_ROW + 100)).to(getattr(torch, dtype))
    if dtype in ("uint16", "uint32", "uint64", "bool"):  # torch lacks some of these
        got = weft.sort(to_weft(values), descending=descending)
        expected = torch.sort(values.long(), descending=descending, stable=True)
        torch.testing.assert_close(to_torch(got.values).long(), expected.values)
        torch.testing.assert_close(to_torch(got.indices), expected.indices)
    else:
        values = values * (-1 if dtype.startswith("float") else 1)
        check("sort", values, descending=descending, stable=True)


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("descending", (False, True))
def test_many_short_rows(dtype, descending):
    values = torch.randint(-9, 9, (9, 40)).to(getattr(torch, dtype))
    check("sort", values, descending=descending, stable=True)
    check("sort", values, dim=0, descending=descending, stable=True)


@settings(max_examples=60, deadline=None)
@given(samples())
def test_msort(sample):
    check("msort", sample[0])


@settings(max_examples=60, deadline=None)
@given(samples(min_size=1), st.booleans(), st.data())
def test_topk_and_kthvalue(sample, largest, data):
    tensor, dim = sample
    size = tensor.shape[dim] if tensor.dim() else 1
    check_selected("topk", tensor, dim, data.draw(st.integers(0, size)), largest=largest)
    check_selected("kthvalue", tensor, dim, data.draw(st.integers(1, size)), keepdim=data.draw(st.booleans()))


def test_topk_of_long_rows():
    values = torch.randn(2, 5000).round(decimals=2)
    values[0, 7] = float("nan")
    check_selected("topk", values, 1, 10)
    check_selected("topk", values, 1, 10, largest=False)
    check_selected("topk", values, 1, 3000)


@settings(max_examples=60, deadline=None)
@given(samples(min_size=1), st.booleans())
def test_medians(sample, keepdim):
    tensor, dim = sample
    for name in ("median", "nanmedian"):
        check(name, tensor)
        check_selected(name, tensor, dim, keepdim=keepdim)


@settings(max_examples=60, deadline=None)
@given(samples(min_size=1, nan=False), st.booleans())
def test_mode(sample, keepdim):
    check("mode", *sample, keepdim)


def test_mode_takes_nans_apart():
    check("mode", torch.tensor([1.0, float("nan"), float("nan"), 2.0, 2.0]))


@pytest.mark.parametrize("name", ("sort", "argsort", "msort", "topk", "kthvalue", "median", "mode"))
def test_complex_numbers_have_no_order(name):
    arguments = {"topk": (1,), "kthvalue": (1,)}.get(name, ())
    with pytest.raises((RuntimeError, NotImplementedError)):
        getattr(weft, name)(weft.ones(2, dtype=weft.complex64), *arguments)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sort", (2,)),
        ("sort", ("0",)),
        ("argsort", (-3,)),
        ("topk", (5,)),
        ("topk", (-1,)),
        ("topk", (1, 2)),
        ("kthvalue", (0,)),
        ("kthvalue", (4,)),
        ("kthvalue", (1, 7)),
        ("median", (2,)),
        ("mode", (2,)),
    ],
)
def test_errors(name, arguments):
    check(name, torch.ones(2, 3), *arguments)


@pytest.mark.refuses(1)
@pytest.mark.parametrize("name", ("median", "nanmedian", "mode"))
def test_dims_of_size_0(name):
    check(name, torch.zeros(0, 3), 0)
    check(name, torch.zeros(0, 3), 1)
    if name != "mode":
        for dtype in (torch.float32, torch.int32, torch.int64):
            check(name, torch.zeros(0, dtype=dtype))


def test_errors_of_nanmedian_name_median():
    for lib in (torch, weft):
        with pytest.raises(IndexError, match=r"^median\(\): Expected reduction dim 0 to have non-zero size"):
            lib.zeros(0, 3).nanmedian(0)


def test_out():
    values, indices = weft.empty(0), weft.empty(0, dtype=weft.int64)
    got = weft.sort(weft.tensor([3.0, 1.0, 2.0]), out=(values, indices))
    assert got.values is values and got.indices is indices
    assert values.tolist() == [1, 2, 3] and indices.tolist() == [1, 2, 0]
    x = weft.ones(3)
    with pytest.raises(RuntimeError, match="single memory location"):
        weft.kthvalue(x, 1, out=(x, indices))


def test_names_of_results():
    found = weft.tensor([2.0, 1.0]).sort()
    assert type(found).__name__ == "sort" and found.indices.tolist() == [1, 0]


SELECTIONS_OF_COMPLEX_NUMBERS = """
torch.mode(torch.tensor(1 - 1.5j))
torch.mode(torch.tensor(1 - 1.5j, dtype=torch.complex128))
torch.kthvalue(torch.tensor(1 - 1.5j, dtype=torch.complex128), 1)
torch.kthvalue(torch.tensor(nan), 1, keepdim=True)
torch.tensor(2).median(0)
torch.mode(torch.tensor([1 - 1.5j]))  # raises
torch.kthvalue(torch.tensor(1 - 1.5j), 1)
torch.median(torch.tensor(1 - 1.5j))  # raises
torch.median(torch.tensor(1 - 1.5j), 0)  # raises
torch.sort(torch.tensor(1 - 1.5j))  # raises
torch.msort(torch.tensor([1 - 1.5j]))  # raises
torch.topk(torch.tensor(1 - 1.5j), 1)  # raises
"""


@pytest.mark.parametrize("expression", lines(SELECTIONS_OF_COMPLEX_NUMBERS))
def test_selections_of_complex_numbers(expression):
    """One complex number without dims is compared with nothing."""
    check_expression(expression)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int64, torch.uint8))
def test_medians_of_long_rows(dtype):
    torch.manual_seed(0)
    x = torch.randint(0, 100, (5, 400)).to(dtype)
    if dtype.is_floating_point:
        x[1, 7::9] = x[2] = float("nan")
    for name in ("median", "nanmedian"):
        values, indices = getattr(to_weft(x), name)(1)
        assert_same(values, getattr(x, name)(1).values)
        assert_same(to_weft(x).gather(1, indices[:, None]).squeeze(1), getattr(x, name)(1).values)
        check(name, x)
