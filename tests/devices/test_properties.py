"""Maps, reductions, scans and indexed writes on a device give the CPU's results for any shape, strides and values.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from drawn import FLOATS, INTEGERS, LAYOUTS, SHAPES, STEP, check, operands
from hypothesis import given, settings
from hypothesis import strategies as st

import weft

MAPS = {
    "add": lambda a, b: a + b,
    "maximum": weft.maximum,
    "where": lambda a, b: weft.where(a > b, a, b),
    "less": lambda a, b: a < b,
    "mul by a number": lambda a, b: a * 3 - b,
    "in place": lambda a, b: a.clone().add_(b),
    "to float16": lambda a, b: (a.to(weft.float16), b.to(weft.bool)),
    "tanh": lambda a, b: (a.tanh(), b.exp()),
    "out": lambda a, b: weft.add(a, b, out=weft.empty(0, dtype=a.dtype, device=a.device)),
}


@pytest.mark.parametrize("name", MAPS)
@settings(max_examples=12 // STEP)
@given(data=st.data())
def test_maps(name, data):
    _, on = data.draw(operands(FLOATS + INTEGERS, 2))
    check(MAPS[name], on)


@pytest.mark.parametrize("name", ["copy_", "add_"])
@settings(max_examples=12 // STEP)
@given(data=st.data())
def test_writes_into_views(name, data):
    shape, on = data.draw(operands(FLOATS + INTEGERS, 2))
    view = data.draw(st.sampled_from(sorted(set(LAYOUTS) - {"expanded"})))

    def function(a, b):
        whole = weft.zeros([2 * size for size in shape], dtype=a.dtype, device=a.device)
        getattr(LAYOUTS[view](whole, shape), name)(b)
        return whole

    check(function, on)


def reductions(dtype):
    if dtype.is_floating_point:
        return ["sum", "amax", "amin", "argmax", "prod", "any", "mean", "logsumexp", "var", "std"]
    return ["sum", "amax", "amin", "argmax", "prod", "all"]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@settings(max_examples=60 // STEP)
@given(data=st.data())
def test_reductions(data):
    shape, on = data.draw(operands(FLOATS + INTEGERS))
    dtype = on("cpu")[0].dtype
    name = data.draw(st.sampled_from(reductions(dtype)))
    dim = data.draw(st.integers(0, len(shape) - 1)) if shape else 0
    if shape and not shape[dim] and name in ("amax", "amin", "argmax"):
        return  # these raise an error for no elements
    exactly = not dtype.is_floating_point or name in ("amax", "amin", "argmax", "any")
    check(lambda a: getattr(a, name)(dim), on, exactly)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dtype", [weft.float32, weft.bfloat16])
def test_moments(dtype):
    """Far from zero, beside an outlier, of one element, of none, and of infinite ones."""
    noise = weft.randn(70, 300, generator=weft.Generator().manual_seed(0))
    outlier = weft.ones(5000)
    outlier[0] = 1e18
    inputs = [noise + 1000, noise * 1e-3 + 7, outlier, noise[:, :1], noise[:, :0]]
    inputs += [weft.tensor([first, 1.0, float("inf")]) for first in (1.0, float("inf"), float("nan"))]
    for x in inputs:

        def function(x):
            found = [weft.var_mean(x, -1, correction=0), weft.std_mean(x, -1, correction=0, keepdim=True)]
            return [*found[0], *found[1], x.var(0, correction=0), x.std(correction=0)]

        check(function, lambda at, x=x: [x.to(dtype).to(at)], exactly=False)


@settings(max_examples=60 // STEP)
@given(data=st.data())
def test_scans(data):
    shape, on = data.draw(operands(FLOATS + INTEGERS))
    dtype = on("cpu")[0].dtype
    name = data.draw(st.sampled_from(["cumsum", "cumprod", "cummax", "cummin"]))
    dim = data.draw(st.integers(0, len(shape) - 1)) if shape else 0
    exactly = not dtype.is_floating_point or name in ("cummax", "cummin")
    check(lambda a: getattr(a, name)(dim), on, exactly)


WRITES = {
    "index_copy": lambda a, dim, index, b: a.index_copy(dim, index, b),
    "index_add": lambda a, dim, index, b: a.index_add(dim, index, b),
    "index_select": lambda a, dim, index, b: a.index_select(dim, index) + b,
    "index_put": lambda a, dim, index, b: a.movedim(dim, 0).index_put(
        (index,), b.movedim(dim, 0), accumulate=True
    ),
}


@pytest.mark.parametrize("name", WRITES)
@settings(max_examples=15 // STEP)
@given(data=st.data())
def test_indices(name, data):
    """Elements that meet are added, or win, in their order, as on the CPU."""
    shape, on = data.draw(operands(FLOATS + INTEGERS, 2, SHAPES.filter(len)))
    dim = data.draw(st.integers(0, len(shape) - 1))
    numbers = st.integers(0, shape[dim] - 1) if shape[dim] else st.nothing()
    index = weft.tensor(
        data.draw(st.lists(numbers, min_size=shape[dim], max_size=shape[dim])), dtype=weft.int64
    )
    check(lambda a, b: WRITES[name](a, dim, index.to(a.device), b), on)


@settings(max_examples=30 // STEP)
@given(data=st.data())
def test_masks(data):
    _, on = data.draw(operands(FLOATS + INTEGERS, 2))
    check(lambda a, b: (a[b > 0], a.masked_fill(b > 0, 2), (b > 0).nonzero()), on)
