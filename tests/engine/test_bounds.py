"""Bounds of clamped floats, and casts that need no check because of them."""

import math

import numpy as np
import pytest

import weft
from weft.core.dtype import float32, float64, int32
from weft.engine.bounds import bounds
from weft.engine.expr import cast, const, isnan, load, select
from weft.engine.kernel import prepare_map
from weft.engine.loops import Result

X = load(0, float32)


def clamped(x, low, high):
    return select(x < high, select(x < low, low, x), high)


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (const(2.5, float64), (2.5, 2.5)),
        (const(math.nan, float32), None),
        (X, None),
        (clamped(X, 0.0, 255.0), (0, 255)),
        (clamped(X, 5.0, -1.0), (-1, 5)),
        (select(X < 3.0, X, 3.0), (-math.inf, 3)),
        (select(X < 3.0, const(3.0, float32), X), None),  # NaN is not less than 3
        (select(X < 3.0, const(0.0, float32), select(X < 9.0, X, 9.0)), (-math.inf, 9)),
        (select(isnan(X), const(0.0, float32), X), None),
        (select(X <= load(1, float32), const(0.0, float32), 1.0), (0, 1)),
        (select(X < const(math.nan, float32), const(0.0, float32), 1.0), (0, 1)),
    ],
)
def test_bounds(expr, wanted):
    assert bounds(expr) == wanted


def stored(value, numbers):
    result = np.full(len(numbers), 7, np.int32)
    launch = prepare_map([Result((cast(value, int32),))], [float32], [], (len(numbers),), ((4,), (4,)))
    launch.entry(result.ctypes.data, numbers.ctypes.data, launch.meta, launch.count)
    return result.tolist()


def test_casts_of_extreme_numbers():
    numbers = np.array([math.nan, math.inf, -math.inf, 1e30, -1e30, 300, 254.6, 0.4, -0.6] * 3, np.float32)
    assert stored(clamped(X, 0.0, 255.0), numbers)[:9] == [255, 255, 0, 255, 0, 255, 254, 0, 0]
    assert stored(clamped(X, -(2.0**31), 2.0**31), numbers)[:5] == [-(2**31)] * 5
    assert stored(X, numbers)[:5] == [-(2**31)] * 5


def test_quantized_numbers():
    x = weft.tensor([math.nan, math.inf, -math.inf, 1e30, -1e30, 0.26, 3.0])
    q = weft.quantize_per_tensor(x, 0.5, 3, weft.quint8)
    assert q.int_repr().tolist() == [255, 255, 0, 255, 0, 4, 9]
