"""Binary searches against NumPy's, and against a search value by value where the sequence is not sorted."""

import numpy as np
import pytest

from weft.core.dtype import float32, float64, int32, int64
from weft.engine.bisection import search_code


def searched(edges, values, right):
    """The same steps for one value."""
    start, end = 0, len(edges)
    while start < end:
        middle = (start + end) // 2
        if edges[middle] > values if right else edges[middle] >= values:
            end = middle
        else:
            start = middle + 1
    return start


@pytest.mark.parametrize("dtype", [float32, float64, int64])
@pytest.mark.parametrize("result", [int32, int64])
@pytest.mark.parametrize("right", [False, True])
def test_positions(dtype, result, right):
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 15, 64, 1000):
        for ordered in (True, False):
            edges = rng.integers(0, 40, (2, n)).astype(dtype.numpy)
            values = rng.integers(-2, 42, (2, 77)).astype(dtype.numpy)
            if ordered:
                edges.sort(axis=-1)
            if dtype is not int64:
                values[0, 5] = np.nan
                edges[0, n * 3 // 4 :] = np.nan
            found = np.full((2, 80), -1, result.numpy)[:, :77].copy()
            meta = np.array([n, n.bit_length(), 77, 2 * 77, n * dtype.itemsize])
            arrays = (found, edges, values, meta)
            search_code(dtype, right, result).entry(*(each.ctypes.data for each in arrays), 2)
            expected = [
                [searched(row, value, right) for value in own] for row, own in zip(edges, values, strict=True)
            ]
            np.testing.assert_array_equal(found, expected)
