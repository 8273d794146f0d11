"""Stable orders of rows of keys, against NumPy's stable sort."""

import numpy as np
import pytest

from weft.engine.radix import order_code, room_bytes


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("rows, n", [(3, 1), (5, 7), (4, 300), (1, 5000)])
def test_orders(bits, rows, n):
    rng = np.random.default_rng(n)
    for most in (
        0,
        3,
        min(2**bits - 1, 70_000),
        2**bits - 1,
    ):  # equal digits, whose passes are skipped, and others
        key = rng.integers(0, most, (rows, n), dtype=f"u{bits // 8}", endpoint=True)
        for parts in (1, 2):
            order, room = np.empty((rows, n), np.int64), np.empty(parts * room_bytes(bits, n), np.uint8)
            meta = np.array([n, rows, parts])
            arrays = (order, key, room, meta)
            order_code(bits).entry(*(each.ctypes.data for each in arrays), parts)
            np.testing.assert_array_equal(order, key.argsort(-1, kind="stable"))
