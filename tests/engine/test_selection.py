"""The least few of each row, against NumPy's stable sort."""

import numpy as np
import pytest

from weft.engine.selection import BLOCK, least_code


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("n", [1, 5, BLOCK, BLOCK + 1, 300])
def test_least(bits, n):
    rng = np.random.default_rng(n)
    for most in (2**bits - 1, 3):  # all but unique, many equal ones
        key = rng.integers(0, most, (4, n), dtype=f"u{bits // 8}", endpoint=True)
        for k in {1, min(n, 3), n}:
            found, meta = np.empty((4, k), np.int64), np.array((n, k))
            least_code(bits).entry(found.ctypes.data, key.ctypes.data, meta.ctypes.data, 4)
            np.testing.assert_array_equal(found, key.argsort(-1, kind="stable")[:, :k])
