"""Views of contents: what a view reads and writes is what NumPy's strides say."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from weft.core.dtype import float32, int16, uint8
from weft.devices.xla.contents import Contents, covers, recast

COUNT = 60


@pytest.fixture(autouse=True, scope="module")
def _dtypes_of_64_bits():
    with jax.enable_x64(True):
        yield


@st.composite
def views(draw):
    """A start, sizes and steps within COUNT elements."""
    sizes = draw(st.lists(st.integers(1, 5), max_size=4))
    steps = [draw(st.integers(-12, 12)) for _ in sizes]
    reach = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
    low, high = -sum(r for r in reach if r < 0), COUNT - 1 - sum(r for r in reach if r > 0)
    if low > high:
        sizes, steps, low, high = [], [], 0, COUNT - 1
    return draw(st.integers(low, high)), sizes, steps


@settings(max_examples=8)
@given(views())
def test_views_are_those_of_numpy(view):
    start, sizes, steps = view
    values = np.arange(COUNT, dtype=np.float32)
    wanted = as_strided(values[start:], sizes, [4 * step for step in steps])
    place, strides = (0, 4 * start), [4 * step for step in steps]
    found = Contents([jax.numpy.asarray(values)], [4 * COUNT]).load(place, float32, sizes, strides)
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=8)
@given(views())
def test_writes_are_those_of_numpy(view):
    start, sizes, steps = view
    values, new = np.arange(COUNT, dtype=np.float32), -1 - np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
    strides = [4 * step for step in steps]
    written = Contents([jax.numpy.asarray(values)], [4 * COUNT])
    written.store((0, 4 * start), [jax.numpy.asarray(new, np.float32)], sizes, strides)
    target = as_strided(values[start:], sizes, strides)
    if len({start + sum(i * s for i, s in zip(place, steps)) for place in np.ndindex(*sizes)}) < target.size:
        return  # elements share places, and any of them may win
    target[...] = new
    np.testing.assert_array_equal(written.arrays[0], values)


def test_slices_and_transposes_are_no_gathers():
    def view(content, start, sizes, steps):
        strides = [4 * step for step in steps]
        return Contents([content], [4 * COUNT]).load((0, 4 * start), float32, sizes, strides)

    content = jax.numpy.arange(COUNT, dtype=np.float32)
    for start, sizes, steps in [
        (0, (6, 10), (10, 1)),
        (3, (6, 4), (10, 1)),
        (1, (10, 6), (1, 10)),
        (59, (6, 5), (-10, -2)),
    ]:
        traced = jax.make_jaxpr(view, static_argnums=(1, 2, 3))(content, start, sizes, steps)
        assert "gather" not in str(traced)
    overlapping = jax.make_jaxpr(view, static_argnums=(1, 2, 3))(content, 0, (5, 5), (2, 1))
    assert "gather" in str(overlapping)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
def test_bits_are_read_as_another_dtype(dtype):
    values = np.arange(6, dtype=np.int16)
    found = recast(jax.numpy.asarray(values), np.dtype(dtype))
    np.testing.assert_array_equal(found, values.view(dtype))


def test_elements_that_are_not_aligned():
    contents = Contents([jax.numpy.arange(8, dtype=np.uint8)], [8])
    found = contents.load((0, 1), int16, (3,), (2,))
    np.testing.assert_array_equal(found, np.arange(1, 7, dtype=np.uint8).view(np.int16))
    contents.store((0, 1), [found + 1], (3,), (2,))
    np.testing.assert_array_equal(contents.load((0, 0), uint8, (8,), (1,)), [0, 2, 2, 4, 4, 6, 6, 7])


def test_covers():
    assert covers(0, (2, 3), (12, 4), 4, 24) and covers(0, (2, 3), (4, 8), 4, 24)
    assert not covers(0, (2, 3), (16, 4), 4, 28)
    assert not covers(4, (5,), (4,), 4, 24)
