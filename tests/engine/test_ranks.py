"""Elements at a rank of a row: the key that a sort would put there, and where it is first."""

import numpy as np
import pytest

from weft.devices.cpu.extras import at_rank


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 300])
@pytest.mark.parametrize("values", [1, 3, 2**64])
def test_the_first_position_of_the_key_at_a_rank(dtype, n, values):
    rng = np.random.default_rng(n)
    last = np.iinfo(dtype).max
    keys = (rng.integers(0, last, (40, n), dtype, endpoint=True) % min(values, int(last))).astype(dtype)
    keys[rng.random(keys.shape) < 0.1] = last
    rank = rng.integers(0, n, (40, 1))
    want = np.take_along_axis(np.sort(keys, axis=-1), rank, -1)
    np.testing.assert_array_equal(at_rank(keys, rank), np.argmax(keys == want, axis=-1, keepdims=True))
