"""unique, unique_consecutive, searchsorted, bucketize and isin against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check
from twins import tensors

import weft

REAL = ("float32", "float64", "int64", "uint8", "bfloat16", "float16")
NAN = float("nan")


def repeated(shape, dtype=torch.int64):
    return torch.randint(0, 3, shape).to(dtype)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=3), st.sampled_from(REAL), st.booleans(), st.booleans())
def test_unique(shape, dtype, inverse, counts):
    tensor = repeated(shape, getattr(torch, dtype))
    check("unique", tensor, return_inverse=inverse, return_counts=counts)
    check("unique_consecutive", tensor, return_inverse=inverse, return_counts=counts)


@pytest.mark.may_raise(least=0.5)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.sampled_from(REAL), st.data())
def test_unique_along_a_dim(shape, dtype, data):
    tensor = repeated(shape, getattr(torch, dtype))
    dim = data.draw(st.integers(-len(shape), len(shape)))
    for name in ("unique", "unique_consecutive"):
        check(name, tensor, return_inverse=True, return_counts=True, dim=dim)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_strides_of_dims_of_size_1(name, dim):
    def program(library):
        tensor = library.arange(32).reshape(2, 4, 4).transpose(0, 2)[:1, :2, :1]
        return getattr(library, name)(tensor, dim=dim).stride()

    assert program(weft) == program(torch)


@pytest.mark.refuses(1)
def test_unique_nan_and_zeros():
    check("unique", torch.tensor([2.0, NAN, 1.0, NAN, 1.0]), return_inverse=True, return_counts=True)
    check("unique", torch.tensor([[2.0, NAN], [1, NAN], [2, NAN]]), True, True, True, 0)
    check("unique_consecutive", torch.tensor([NAN, NAN, 1.0]), True, True)
    check("unique", torch.tensor([0.0, -0.0]))
    check("unique", torch.tensor(3), dim=0)
    check("unique", torch.ones(2, dtype=torch.complex64))


@pytest.mark.parametrize("low", (-(2**63), -3, 2**63 - 9, 2**64 - 9))
def test_unique_of_integers_close_together(low):
    dtype = torch.uint64 if low > 2**63 else torch.int64
    values = torch.tensor([low + k for k in (5, 2, 2, 8, 5)], dtype=dtype)
    check("unique", values, return_inverse=True, return_counts=True)


def test_unique_of_many():
    tensor = torch.randint(0, 1000, (10000,))
    check("unique", tensor, return_inverse=True, return_counts=True)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-3, 3), max_size=6),
    tensors(dtypes=("float32", "float64", "int64", "uint8", "bfloat16")),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("float32", "int32", "float64")),
)
def test_searchsorted(edges, values, right, out_int32, dtype):
    boundaries = torch.tensor(sorted(edges), dtype=getattr(torch, dtype))
    check("searchsorted", boundaries, values, right=right, out_int32=out_int32)
    check("bucketize", values, boundaries, right=right, out_int32=out_int32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.integers(0, 4))
def test_searchsorted_in_rows(shape, size):
    boundaries = torch.randn(shape).sort()[0]
    check("searchsorted", boundaries, torch.randn(*shape[:-1], size), side="right")


def test_searchsorted_numbers_sorter_nan():
    boundaries = torch.tensor([1.0, 2.0, 3.0])
    check("searchsorted", boundaries, 2)
    check("searchsorted", boundaries, 2.5, right=True)
    check("searchsorted", torch.tensor([1, 2, 3]), 1.5)
    check("searchsorted", boundaries, torch.tensor([NAN, 0.0, 5.0]))
    check("searchsorted", torch.tensor([3.0, 1.0, 2.0]), boundaries, sorter=torch.tensor([1, 2, 0]))
    check("bucketize", 2, boundaries)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    ("boundaries", "values", "options"),
    [
        (torch.ones(3), torch.ones(2), {"side": "x"}),
        (torch.ones(3), torch.ones(2), {"side": "left", "right": True}),
        (torch.ones(3), torch.ones(2), {"sorter": torch.tensor([0, 1])}),
        (torch.ones(3), torch.ones(2), {"sorter": torch.tensor([0.0, 1.0, 2.0])}),
        (torch.ones(3), torch.ones(2), {"sorter": torch.tensor([0, 1, 3])}),
        (torch.ones(1, 3), torch.ones(2), {}),
        (torch.ones(1, 3), 1.0, {}),
        (torch.tensor(1.0), torch.ones(2), {}),
        (torch.ones(3), torch.ones(2), {"out": torch.ones(2)}),
        (torch.ones(3, dtype=torch.complex64), torch.ones(2), {}),
    ],
)
def test_searchsorted_errors(boundaries, values, options):
    check("searchsorted", boundaries, values, **options)


@settings(max_examples=60, deadline=None)
@given(tensors(dtypes=REAL), tensors(dtypes=REAL), st.booleans(), st.booleans())
def test_isin(elements, test_elements, invert, unique):
    test_elements = test_elements.contiguous()  # torch raises for others
    check("isin", elements, test_elements, invert=invert, assume_unique=unique and not elements.numel())


@pytest.mark.refuses(3)
def test_isin_numbers_and_errors():
    check("isin", torch.tensor([1, 2, 3]), 2)
    check("isin", 2, torch.tensor([1, 2, 3]))
    check("isin", torch.tensor([1.0, NAN]), torch.tensor([NAN]))
    check("isin", 1, 2)
    check("isin", torch.tensor([True]), torch.tensor([True]))
    check("isin", torch.tensor([1j]), torch.tensor([1.0]))


UNSORTED_SEQUENCES = """
torch.searchsorted(torch.tensor([-3, -1, 3, 5, -2, 2]), torch.tensor([-3, -1, 3, 5, -2, 2]))
torch.searchsorted(torch.tensor([-3, -1, 3, 5, -2, 2]), torch.tensor([-3, -1, 3, 5, -2, 2]), right=True)
torch.searchsorted(torch.tensor([2.0, nan, 1.0]), torch.tensor([nan, 1.0, 0.5]))
torch.searchsorted(torch.tensor([2.0, nan, 1.0]), torch.tensor([nan, 1.0, 0.5]), right=True)
torch.searchsorted(torch.tensor([nan, nan, nan]), torch.tensor([nan, 1.0, 0.5]))
torch.searchsorted(torch.tensor([nan, nan, nan]), torch.tensor([nan, 1.0, 0.5]), right=True)
torch.searchsorted(torch.tensor([2.0, 1.0, 5.0, 0.25, 4.0, 5.0]), torch.tensor([-1.5, 0.0, 4.0, -1.5, 2.0, 1.0]).double())
torch.searchsorted(torch.tensor([[3, 1, 2], [1, 2, 3]]), torch.tensor([[2, 1], [0, 4]]), sorter=torch.tensor([[1, 2, 0], [0, 2, 1]]))
torch.searchsorted(torch.tensor([1.0, 2.0], dtype=torch.bfloat16), torch.tensor([1.5, 1.0], dtype=torch.bfloat16))
torch.searchsorted(torch.zeros(2, 0), torch.zeros(2, 3))
torch.searchsorted(torch.zeros(0), torch.zeros(2, 3))
"""


@pytest.mark.parametrize("expression", lines(UNSORTED_SEQUENCES))
def test_unsorted_sequences(expression):
    """The steps of a binary search decide, and they are PyTorch's."""
    check_expression(expression)


UNFIT = """
torch.isin("a", torch.ones(0))  # raises
torch.isin(torch.ones(1), "a")  # raises
torch.isin(1, torch.ones(2))
torch.isin(torch.ones(0, 2), torch.ones(2))
torch.isin(torch.ones(2, 0), torch.ones(2))
torch.zeros(0).unique()
torch.zeros(0).unique_consecutive()
torch.zeros(0, dtype=torch.bfloat16).unique_consecutive().view(torch.complex64)
torch.tensor([[2.0, 3.0]]).unique(dim=1)._is_view()
torch.tensor([2.0]).unique_consecutive(dim=0).detach_()
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
