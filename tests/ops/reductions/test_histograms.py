"""histc, histogram, histogramdd and bincount against PyTorch."""

import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check, to_weft

NAN = float("nan")
FLOATS = st.sampled_from((torch.float32, torch.float64))


def grid(low, high, count, dtype):
    """Values on the edges of bins and between them, some outside."""
    return torch.cat([torch.linspace(low, high, count + 1), torch.linspace(low - 1, high + 1, 50)]).to(dtype)


@settings(max_examples=60, deadline=None)
@given(st.floats(-9, 9), st.floats(0.1, 9), st.integers(1, 40), FLOATS)
def test_equal_bins(low, width, count, dtype):
    values = grid(low, low + width, count, dtype)
    check("histc", values, count, low, low + width)
    check("histc", values, count)
    check("histogram", values, count, range=(low, low + width))
    check("histogram", values, count)


@settings(max_examples=60, deadline=None)
@given(st.floats(-9, 9), st.floats(1e-6, 9), st.integers(1, 20), st.sampled_from([0, 1e-3, 0.3]), FLOATS)
def test_edges_at_about_equal_distances(low, width, count, shift, dtype):
    edges = torch.linspace(low, low + width, count + 1, dtype=dtype)
    edges = (edges + shift * width / count * torch.rand(count + 1, dtype=dtype)).sort().values
    up, down = (edges.nextafter(torch.tensor(end, dtype=dtype)) for end in (float("inf"), float("-inf")))
    outside = torch.tensor([float("inf"), float("-inf"), float("nan"), low - 1, low + 20], dtype=dtype)
    check("histogram", torch.cat([edges, up, down, outside]), edges)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-4, 4), min_size=2, max_size=6), FLOATS, st.booleans())
def test_given_edges(edges, dtype, density):
    edges = torch.tensor(sorted(edges)).to(dtype)
    values = torch.linspace(-5, 5, 41).to(dtype)
    check("histogram", values, edges, density=density)
    check("histogram", values, edges, weight=values.abs(), density=density)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), FLOATS, st.booleans())
def test_several_dims(bins, dtype, density):
    points = torch.randn(20, len(bins), generator=torch.Generator().manual_seed(1)).to(dtype)
    check("histogramdd", points, bins, density=density)
    check("histogramdd", points, bins[0], weight=torch.rand(20, dtype=dtype))
    check("histogramdd", points, bins, range=[-1.0, 2.0] * len(bins))
    check("histogramdd", points, [torch.arange(-2, 3).to(dtype)] * len(bins))


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16))
def test_narrow_floats(dtype):
    check("histc", torch.linspace(0, 1, 33).to(dtype), 7, 0, 1)


X = torch.tensor([1.0, 2.0])


@pytest.mark.refuses(
    [
        "histc-arguments0-options0", "histc-arguments1-options1", "histc-arguments2-options2",
        "histc-arguments3-options3", "histogram-arguments6-options6", "histogram-arguments7-options7",
        "histogram-arguments8-options8", "histogram-arguments9-options9", "histogram-arguments10-options10",
        "histogram-arguments11-options11", "histogram-arguments13-options13",
        "histogram-arguments14-options14", "histogram-arguments15-options15",
        "histogram-arguments16-options16", "histogramdd-arguments18-options18",
        "histogramdd-arguments19-options19", "histogramdd-arguments20-options20",
    ]
)  # fmt: skip
@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("histc", (X, 0), {}),
        ("histc", (X, 3, 5, 1), {}),
        ("histc", (X, 2.5), {}),
        ("histc", (torch.tensor([1.0, NAN]),), {}),
        ("histc", (torch.zeros(0), 3), {}),
        ("histc", (torch.ones(3), 3), {}),
        ("histogram", (X, 0), {}),
        ("histogram", (X, torch.tensor([1, 2])), {}),
        ("histogram", (X, torch.ones(1, 2)), {}),
        ("histogram", (X, torch.ones(0)), {}),
        ("histogram", (X, torch.ones(1)), {}),
        ("histogram", (X, 3), {"range": (2.0, 1.0)}),
        ("histogram", (X, 3), {"range": (1.0, 1.0)}),
        ("histogram", (X, 3), {"range": (1.0,)}),
        ("histogram", (X, 3), {"weight": torch.tensor([1, 2])}),
        ("histogram", (X, 3), {"weight": torch.ones(3)}),
        ("histogram", (torch.tensor([1.0, NAN]), 3), {}),
        ("histogram", (torch.zeros(0), 3), {}),
        ("histogramdd", (X, [2]), {}),
        ("histogramdd", (torch.ones(2, 2), [2]), {}),
        ("histogramdd", (torch.ones(2, 2), [X]), {}),
    ],
)
def test_corners_and_errors(name, arguments, options):
    check(name, *arguments, **options)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=9), st.integers(0, 12), st.booleans())
def test_bincount(values, minlength, weighted):
    for dtype in (torch.int64, torch.uint8, torch.int32):
        tensor = torch.tensor(values, dtype=dtype)
        weights = torch.arange(len(values)).float() / 4 if weighted else None
        check("bincount", tensor, weights, minlength)


@pytest.mark.refuses(5)
def test_bincount_weights_and_errors():
    tensor = torch.tensor([1, 2, 2])
    for dtype in (torch.int64, torch.float16, torch.float64):
        check("bincount", tensor, torch.tensor([1, 2, 3]).to(dtype))
    for arguments in ((-tensor,), (-tensor, X), (X,), (tensor[None],), (tensor, X), (tensor, None, -1)):
        check("bincount", *arguments)


UNFIT = """
torch.histogram(torch.ones(3), True)  # raises
torch.histogram(torch.ones(3), 2.0)  # raises
torch.histogram(torch.ones(3), "a")  # raises
torch.histogram(torch.ones(3), None)  # raises
torch.histogramdd(torch.ones(3, 2), [True, True])  # raises
torch.histogramdd(torch.ones(3, 2), [2.0, 2.0])  # raises
torch.histogramdd(torch.ones(3, 2), 2.0)  # raises
torch.histogramdd(torch.ones(3, 2), True)  # raises
torch.histogramdd(torch.ones(3, 2), 2).hist
torch.histogram(torch.ones(2), 2, range="a")  # raises
torch.histogram(torch.ones(2), 2, range=("a", "b"))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize(
    "top, n, minlength", [(3, 100, 9), (100, 300_000, 0), (1023, 50, 0), (1024, 50, 2000), (30_000, 99, 0)]
)
def test_bincount_of_few_and_many_integers(dtype, top, n, minlength):
    top = min(top, torch.iinfo(getattr(torch, dtype)).max)
    values = torch.randint(0, top, (2 * n,), generator=torch.Generator().manual_seed(n)).to(
        getattr(torch, dtype)
    )
    values[4] = top
    check("bincount", values, minlength=minlength)
    check("bincount", values[::2], minlength=minlength)
    if dtype != "uint8":
        values[0] = -1
        with pytest.raises(RuntimeError, match="non-negative"):
            to_weft(values).bincount()
