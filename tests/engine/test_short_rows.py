"""Orders of short rows, found by counting, are NumPy's stable ones."""

import numpy as np
import pytest

from weft.engine.short_rows import LANES, MOST_KEYS, order_code


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_orders_are_stable_ones(bits):
    rng = np.random.default_rng(bits)
    for n in (1, 2, LANES - 1, LANES, LANES + 1, 3 * LANES + 5, MOST_KEYS):
        for distinct in (1, 3, 1 << bits - 1):
            keys = rng.integers(0, distinct, (4, n), dtype=f"uint{bits}")
            keys[1] |= 1 << (bits - 1)  # keys are compared without a sign
            for k in {1, n // 2 or 1, n}:
                found, meta = np.full((4, k), -1), np.array([n, k])
                order_code(bits).entry(found.ctypes.data, keys.ctypes.data, meta.ctypes.data, 4)
                assert (found == np.argsort(keys, axis=-1, kind="stable")[:, :k]).all(), (n, distinct, k)
