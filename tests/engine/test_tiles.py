import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.engine.tiles import BLOCK, LONG, SHORT, SHORT_STRIDED, TILE, regions


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_regions_cover_every_element_once(data):
    sizes = data.draw(st.lists(st.integers(1, 3), max_size=1)) + data.draw(
        st.lists(
            st.sampled_from([1, 5, TILE, 2 * TILE, 2 * TILE + 1, 3 * TILE - 1, 3 * BLOCK]),
            min_size=2,
            max_size=2,
        )
    )
    out = np.zeros(sizes, np.uint8)
    crossed = (4, 4000) if len(sizes) == 2 else (4 * 10**7, 4, 4000)
    seen = np.zeros(out.size, int)
    for region in regions(sizes, [out.strides, crossed], [1, 4]):
        part = np.lib.stride_tricks.as_strided(
            seen[region.offsets[0] :], region.sizes, [8 * step for step in region.strides[0]]
        )
        part += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("shape", [(512, 512), (300, 517), (3, 200, 333), (65, 64)])
def test_transposed_copies(shape):
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    turned = weft.from_numpy(array).transpose(-1, -2)
    np.testing.assert_array_equal(turned.contiguous().numpy(), array.swapaxes(-1, -2))
    np.testing.assert_array_equal((turned * 2).numpy(), array.swapaxes(-1, -2) * 2)
    other = weft.from_numpy(np.ascontiguousarray(array.swapaxes(-1, -2)))
    np.testing.assert_array_equal((other + turned).numpy(), 2 * array.swapaxes(-1, -2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64", "int16", "bool"])
@pytest.mark.parametrize("perm", [(1, 0, 2), (2, 0, 1), (0, 2, 1), (2, 1, 0)])
def test_permuted_copies_of_all_sizes_of_elements(perm, dtype):
    """4 and 8 bytes are transposed in registers; the sizes leave edges beside whole tiles."""
    array = np.random.default_rng(0).integers(0, 250, (37, 130, 133)).astype(dtype)
    turned = weft.from_numpy(array).permute(*perm)
    np.testing.assert_array_equal(turned.contiguous().numpy(), array.transpose(perm))
    back = weft.empty(array.shape, dtype=turned.dtype).permute(*perm)
    np.testing.assert_array_equal(back.copy_(turned.contiguous()).numpy(), array.transpose(perm))


@pytest.mark.parametrize("short", [1, 2, 3, SHORT, SHORT + 1, SHORT_STRIDED, SHORT_STRIDED + 1])
@pytest.mark.parametrize("long", [LONG - 1, LONG, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 5 * BLOCK + 7])
def test_short_rows(short, long):
    array = np.random.default_rng(0).integers(0, 100, (60, short, long)).astype(np.float32)  # MANY elements
    turned = weft.from_numpy(array).transpose(1, 2)
    expected = array.swapaxes(1, 2)
    rows = turned.contiguous()
    np.testing.assert_array_equal(rows.numpy(), expected)
    np.testing.assert_array_equal(rows.flip(2).numpy(), expected[..., ::-1])
    np.testing.assert_array_equal((rows * rows[:, :1]).numpy(), expected * expected[:, :1])
    np.testing.assert_array_equal(
        (turned - rows[:, :, :1]).contiguous().numpy(), expected - expected[:, :, :1]
    )
    target = weft.zeros(60, long, short + 1)[..., :short]
    np.testing.assert_array_equal(target.copy_(turned).numpy(), expected)
