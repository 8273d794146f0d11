"""Floats to integers and back: PyTorch's bits, for every storage dtype, special values and values halfway between two integers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.layouts.quantized import numbers

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")

DTYPES = {weft.uint8: torch.quint8, weft.int8: torch.qint8, weft.int32: torch.qint32}
EXTREMES = [
    0.0,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    1e-45,
    1e9,
    -1e9,
    3e9,
    -3e9,
    1e30,
    -1e30,
    2.0**31,
    -(2.0**31),
    2147483520.0,
]
SCALES = [0.1, 1.0, 0.25, 1e-40, 1e-46, 3e38, 1e300, -0.1, float("inf"), float("nan")]


def halves(seed, scale, zero_point):
    """Values whose integers lie as close as possible to the middle between two, where the way of rounding shows."""
    random = np.random.default_rng(seed)
    whole = random.integers(-300, 300, 2000) + 0.5 - zero_point
    near = (whole * np.float64(scale)).astype(np.float32)
    bits = near.view(np.int32) + random.integers(-2, 3, near.size).astype(np.int32)
    return np.concatenate([bits.view(np.float32), np.float32(EXTREMES)])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.floats(1e-3, 1e3) | st.sampled_from(SCALES),
    zero_point=st.integers(0, 127),
)
def test_one_scale(dtype, seed, scale, zero_point):
    values = halves(seed, scale if 0 < abs(scale) < 1e30 else 1.0, zero_point)
    if dtype is weft.int32 and seed % 2:
        zero_point = zero_point * 16777259 - 2**31
    wanted = torch.quantize_per_tensor(torch.from_numpy(values), scale, zero_point, DTYPES[dtype])
    found = numbers.quantize_per_tensor(weft.from_numpy(values), scale, zero_point, dtype)
    assert found.dtype is dtype
    np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())
    back = numbers.dequantize_per_tensor(found, scale, zero_point)
    assert back.dtype is weft.float32
    np.testing.assert_array_equal(back.numpy(), wanted.dequantize().numpy())


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_scale_for_each_channel(dtype, axis, seed):
    random = np.random.default_rng(seed)
    scales, points = random.uniform(1e-2, 3, 4), random.integers(0, 128, 4)
    if dtype is weft.int32 and seed % 2:
        points = random.integers(-(2**31), 2**31, 4)
    values = np.stack([halves(seed, scale, point)[-160:] for scale, point in zip(scales, points % 128)])
    values = np.moveaxis(values.reshape(4, -1, 2), 0, axis).copy()
    arrays = values, scales, points
    wanted = torch.quantize_per_channel(*map(torch.from_numpy, arrays), axis % 3, DTYPES[dtype])
    found = numbers.quantize_per_channel(*map(weft.from_numpy, arrays), axis, dtype)
    np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())
    back = numbers.dequantize_per_channel(found, *map(weft.from_numpy, arrays[1:]), axis)
    assert back.dtype is weft.float32
    np.testing.assert_array_equal(back.numpy(), wanted.dequantize().numpy())


@pytest.mark.parametrize("dtype", [weft.uint8, weft.int8], ids=str)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_float_zero_points(dtype, seed):
    random = np.random.default_rng(seed)
    scales, points = (
        random.uniform(1e-2, 3, 4).astype(np.float32),
        random.uniform(0, 100, 4).astype(np.float32),
    )
    scales[seed % 4] *= seed % 3
    values = np.stack([halves(seed, scale or 1, 0) for scale in scales])
    arrays = values, scales, points
    wanted = torch.quantize_per_channel(*map(torch.from_numpy, arrays), 0, DTYPES[dtype])
    found = numbers.quantize_per_float_channel(*map(weft.from_numpy, arrays), 0, dtype)
    np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())
    back = numbers.dequantize_per_float_channel(found, *map(weft.from_numpy, arrays[1:]), 0)
    np.testing.assert_array_equal(back.numpy(), wanted.dequantize().numpy())


@pytest.mark.parametrize("dtype", [torch.quint4x2, torch.quint2x4], ids=str)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-3, 1e3) | st.just(0.0), count=st.integers(0, 40))
def test_several_integers_in_a_byte(dtype, seed, scale, count):
    bits = 4 if dtype is torch.quint4x2 else 2
    point = seed % 2**bits
    values = np.resize(np.random.default_rng(seed).permutation(halves(seed, scale or 1.0, point)), count)
    wanted = torch.quantize_per_tensor(torch.from_numpy(values), scale, point, dtype)
    found = numbers.quantize_in_bits(weft.from_numpy(values), scale, point, bits)
    packed = numbers.pack_bits(found, bits)
    np.testing.assert_array_equal(packed.numpy(), wanted.int_repr().numpy())
    np.testing.assert_array_equal(numbers.unpack_bits(packed, bits, (count,)).numpy(), found.numpy())
    if bits == 4 and count:
        scales, points = np.float32([scale]), np.float32([point + 0.3])
        rows = torch.from_numpy(values[None]), torch.from_numpy(scales), torch.from_numpy(points)
        wanted = torch.quantize_per_channel(*rows, 0, dtype)
        given_ = weft.from_numpy(values[None]), weft.from_numpy(scales), weft.from_numpy(points)
        found = numbers.quantize_per_float_channel(*given_, 0, weft.uint8, bits)
        np.testing.assert_array_equal(numbers.pack_bits(found, bits).numpy(), wanted.int_repr().numpy())


def test_layouts_and_strides_are_kept():
    image = weft.randn(2, 3, 4, 5).to(memory_format=weft.channels_last)
    found = numbers.quantize_per_tensor(image, 0.1, 10, weft.uint8)
    assert found.stride() == image.stride()
    assert numbers.quantize_per_tensor(image[:, :, ::2, 1:], 0.1, 10, weft.uint8).equal(found[:, :, ::2, 1:])
    assert numbers.quantize_per_tensor(weft.zeros(0, 3), 0.1, 10, weft.int8).shape == (0, 3)
    negated = weft._neg_view(image)
    assert numbers.quantize_per_tensor(negated, 0.1, 10, weft.uint8).equal(
        numbers.quantize_per_tensor(-image, 0.1, 10, weft.uint8)
    )
