"""Counts of integers against NumPy's."""

import numpy as np
import pytest

from weft.core.dtype import int8, int32, int64, uint8, uint16
from weft.engine.counting import TABLES, count_code


@pytest.mark.parametrize("dtype", [int8, uint8, uint16, int32, int64])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 1000])
@pytest.mark.parametrize("parts", [1, 3])
def test_counts(dtype, n, parts):
    low, span = (-5 if dtype.kind == "i" else 3), 20
    values = np.random.default_rng(n).integers(low - 2 if dtype.kind == "i" else 0, 40, n, dtype=dtype.numpy)
    values[0] = np.iinfo(dtype.numpy).max
    tables = np.zeros((parts, TABLES, span + 1), np.int64)
    meta = np.array([n, parts, low, span, tables.strides[1], tables.strides[0]])
    count_code(dtype).entry(tables.ctypes.data, values.ctypes.data, meta.ctypes.data, parts)
    counts = tables.sum((0, 1))
    expected = [(values.astype(np.int64) == low + k).sum() for k in range(span)]
    np.testing.assert_array_equal(counts, [*expected, n - sum(expected)])
