"""Selections by rank, distinct elements and searches on a device give what the CPU's give, without arrays on the host.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from drawn import FLOATS, HERE, INTEGERS, SHAPES, STEP, check, operands
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft as torch

pytestmark = pytest.mark.usefixtures("without_arrays")
NAN, INF = float("nan"), float("inf")

# The fixture is the same for all examples.
examples = settings(max_examples=24 // STEP, suppress_health_check=[HealthCheck.function_scoped_fixture])
NOT_EMPTY = SHAPES.filter(lambda shape: shape and 0 not in shape)

SELECTIONS = {
    "median": lambda x, dim: x.median(dim),
    "nanmedian": lambda x, dim: x.nanmedian(dim, keepdim=True),
    "kthvalue": lambda x, dim: x.kthvalue((x.shape[dim] + 2) // 3, dim),
    "mode": lambda x, dim: x.mode(dim),
}


@pytest.mark.parametrize("name", SELECTIONS)
@examples
@given(data=st.data())
def test_selections(name, data):
    shape, on = data.draw(operands(FLOATS + INTEGERS, shapes=NOT_EMPTY))
    dim = data.draw(st.integers(0, len(shape) - 1))
    check(lambda x: SELECTIONS[name](x, dim), on)
    if name.endswith("median"):
        check(lambda x: getattr(x, name)(), on)


@pytest.mark.parametrize("function", [torch.unique, torch.unique_consecutive])
@examples
@given(data=st.data())
def test_distinct_elements(function, data):
    shape, on = data.draw(operands(FLOATS + INTEGERS, shapes=NOT_EMPTY))
    dim = data.draw(st.sampled_from([None, *range(len(shape))]))
    check(lambda x: function(x // 30, return_inverse=True, return_counts=True, dim=dim), on)
    check(lambda x: function(x, dim=dim), on)


def test_rows_with_equal_beginnings():
    rows = torch.randint(0, 2, (700, 5), generator=torch.Generator().manual_seed(0))
    check(lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True), lambda at: [rows.to(at)])


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
@examples
@given(data=st.data())
def test_searches(data):
    shape, on = data.draw(operands(FLOATS + INTEGERS, 2, NOT_EMPTY))
    right = data.draw(st.booleans())
    check(lambda x, y: torch.searchsorted(x.sort().values, y.contiguous(), right=right), on)
    check(lambda x, y: torch.bucketize(y, x.flatten().sort().values, right=right, out_int32=True), on)
    # In a sequence that is not sorted, the steps of the search decide.
    check(lambda x, y: torch.searchsorted(x.flatten(), y.contiguous(), right=right), on)
    check(lambda x, y: torch.searchsorted(x.flatten(), y.contiguous(), sorter=x.flatten().argsort()), on)


@examples
@given(data=st.data())
def test_membership(data):
    _, on = data.draw(operands(FLOATS + INTEGERS, 2))
    check(lambda x, y: (torch.isin(x, y), torch.isin(x // 9, y // 9, invert=True)), on)


def test_special_elements():
    x = torch.tensor([3, 1, NAN, 2, NAN, -0.0, 0, INF, -INF, 1])

    def function(x):
        found = [*x.unique(return_inverse=True, return_counts=True), x.median(), x.nanmedian(), *x.mode()]
        return [*found, torch.isin(x, x[2:6]), torch.searchsorted(x.sort().values, x)]

    check(function, lambda at: [x.to(at)])
    large = torch.tensor([1, 3, 2**63 + 1], dtype=torch.uint64)
    check(lambda x: torch.searchsorted(x, x), lambda at: [large.to(at)])
    check(lambda x: torch.searchsorted(x[:0], x), lambda at: [x.to(at)])


def test_gradients():
    def slope(x):
        x = x.detach().requires_grad_()
        (
            x.median() + x.kthvalue(2)[0].sum() * 2 + x.mode(0)[0].sum() * 3 + x.nanmedian(1)[0].sum()
        ).backward()
        return x.grad

    x = torch.rand(5, 6, generator=torch.Generator().manual_seed(0))
    check(slope, lambda at: [x.to(at)])


def test_errors_are_the_cpus():
    for where in ("cpu", HERE):
        x = torch.ones(3, 0, device=where)
        with pytest.raises(IndexError, match="Expected reduction dim 1"):
            x.median(1)
        with pytest.raises(RuntimeError, match="out of range"):
            torch.ones(3, device=where).kthvalue(4)
        with pytest.raises(RuntimeError, match="0 sized dimensions"):
            x.unique(dim=0)
        assert x.median().isnan() and x.median().device == torch.device(where)
