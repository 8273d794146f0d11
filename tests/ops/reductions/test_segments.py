"""`torch.segment_reduce` in both libraries."""

import pytest
from alike import same

LENGTHS = {"lengths": [2, 0, 2]}


def _call(lib, values, reduce, requires_grad=False, **options):
    for name in ("lengths", "offsets", "indices"):
        if name in options:
            options[name] = lib.tensor(options[name])
    data = lib.tensor(values, requires_grad=requires_grad)
    found = lib.segment_reduce(data, reduce, **options)
    if not requires_grad:
        return found
    return found, lib.autograd.grad((found * found).sum(), data)[0], type(found.grad_fn).__name__


@pytest.mark.parametrize("initial", [None, 3])
@pytest.mark.parametrize("where", [LENGTHS, {"offsets": [0, 2, 2, 4]}])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod", "amax", "amin"])
def test_vectors(reduce, where, initial):
    same(lambda lib: _call(lib, [1.0, 2.0, 3.0, 4.0], reduce, initial=initial, **where))


@pytest.mark.parametrize("initial", [None, 3])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_gradients(reduce, initial):
    values = [[2.0, 3.0], [2.0, 1.0], [3.0, 0.5], [1.0, 0.0]]
    same(lambda lib: _call(lib, values, reduce, True, lengths=[3, 1], initial=initial))


def test_segments_of_rows():
    values = [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
    for reduce in ("sum", "max"):
        same(lambda lib, r=reduce: _call(lib, values, r, lengths=[1, 2]))
        same(lambda lib, r=reduce: _call(lib, values, r, lengths=[[1, 3], [2, 2], [4, 0]], axis=1))
        same(lambda lib, r=reduce: _call(lib, values, r, offsets=[[0, 1], [2, 4], [1, 1]], axis=1))


@pytest.mark.refuses(
    {
        "options0": 1,
        "options1": 2,
        "options2": 2,
        "options3": 2,
        "options4": 2,
        "options5": 1,
        "options6": 1,
        "options7": 1,
        "options8": 1,
    }
)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lengths": [2, 1]},
        {"lengths": [2, -1]},
        {"lengths": [2.0, 2.0]},
        {"lengths": [2, 2], "axis": 1},
        {"lengths": [2, 2], "axis": -1},
        {"indices": [2, 2]},
        {"lengths": [2, 1], "unsafe": True},
        {"reduce": "other", "lengths": [4]},
    ],
)
def test_arguments(options):
    reduce = options.get("reduce", "sum")
    rest = {name: value for name, value in options.items() if name != "reduce"}
    same(lambda lib: _call(lib, [1.0, 2.0, 3.0, 4.0], reduce, **rest))
    if "lengths" in options and reduce == "sum":
        same(lambda lib: _call(lib, [1, 2, 3, 4], reduce, **rest))


def test_a_nan_stays():
    for reduce in ("sum", "max", "min", "mean"):
        same(lambda lib, r=reduce: _call(lib, [1.0, float("nan"), 3.0], r, lengths=[2, 1]))
