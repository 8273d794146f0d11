"""Converts numbers of quantized tensors: from floats to integers and back.

An integer q stands for `(q - zero_point) * scale`. qint8, quint8 and qint32 are stored as int8, uint8 and int32; quint4x2 and quint2x4 as
the bits of uint8. The functions take and return strided tensors, and record nothing for autograd.

PyTorch's kernels round in different ways, and these functions have the bits of each: for one scale, bytes are rounded once by a fused
multiply-add, all else after the multiplication and after the addition. NaN becomes the greatest byte, or 0 with a scale for each channel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ...core.derivative import nondifferentiable
from ...core.dtype import DType, float32, float64, int8, int32, int64, uint8
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.map import Map, Types
from ...ops.assembly.padding import constant_pad

# The least and the greatest integer of each dtype of storage.
RANGES = {uint8: (0, 255), int8: (-128, 127), int32: (-(2**31), 2**31 - 1)}


# ---- Elements --------------------------------------------------------------------------------------------------------


def saturated(value: s.Expr, dtype: DType) -> s.Expr:
    """A float32 as an integer of `dtype`; what is out of range becomes its end, and NaN the greatest byte or the least int32."""
    low, high = RANGES[dtype]
    if dtype is int32:
        return s.where(
            value < 2.0**31, s.cast(value, int32), s.where(s.isnan(value), low, s.const(high, int32))
        )
    return s.cast(s.where(value < high, s.where(value < low, low, value), s.const(high, float32)), int32)


def quantized_number(value: s.Expr, scale: s.Expr, zero_point: s.Expr, dtype: DType) -> s.Expr:
    """Return a float32 as an integer of `dtype`, with one scale and one zero point."""
    inverse = 1.0 / scale
    if dtype is int32:
        return saturated(s.rint(value * inverse + zero_point), dtype)
    return saturated(s.rint(s.fma(value, inverse, zero_point)), dtype)


def _by_channel(dtype: DType) -> Callable:
    def element(value, scale, zero_point):
        found = s.rint(value * (1.0 / scale) + zero_point)
        if dtype is int32:
            return saturated(found, dtype)
        return s.where(s.isnan(found), 0, saturated(found, dtype))

    return element


def _clamped(value: s.Expr, low: int, high: int) -> s.Expr:
    """Return an integer between the bounds, as int32."""
    return s.cast(s.minimum(s.maximum(value, low), high), int32)


def _by_float_channel(low: int, high: int) -> Callable:
    """As PyTorch's, this keeps the lower 32 bits of an int64, so that numbers of a large size may have any result."""

    def element(value, scale, zero_point):
        inverse = s.where(s.eq(scale, 0.0), 1.0, 1.0 / scale)
        return _clamped(s.cast(s.cast(s.rint(value * inverse + zero_point), int64), int32), low, high)

    return element


def _by_tensor_in_bits(high: int) -> Callable:
    def element(value, scale, zero_point):
        inverse = s.where(s.eq(scale, 0.0), 1.0, 1.0 / scale)
        return _clamped(s.cast(s.rint(value * inverse), int64) + s.cast(zero_point, int64), 0, high)

    return element


def op_of(element: Callable, operands: DType, result: DType) -> Map:
    """Return the op with this element of a tensor, a scale, a zero point ..., all converted to `operands` first."""
    return Map("quantized", lambda common: Types(operands, result), element, derivative=nondifferentiable)


_BY_TENSOR = {
    dtype: op_of(functools.partial(quantized_number, dtype=dtype), float32, dtype) for dtype in RANGES
}
_BY_CHANNEL = {dtype: op_of(_by_channel(dtype), float32, dtype) for dtype in RANGES}


@functools.cache
def _float_channel_step(dtype: DType, low: int, high: int) -> Map:
    return op_of(_by_float_channel(low, high), float32, dtype)


@functools.cache
def _bits_step(high: int) -> Map:
    return op_of(_by_tensor_in_bits(high), float32, uint8)


_FROM_BYTES = op_of(lambda q, scale, zero_point: (q - zero_point) * scale, float32, float32)
_FROM_INTEGERS = op_of(
    lambda q, scale, zero_point: (
        s.cast(s.cast(q, int32) - s.cast(zero_point, int32), float32) * s.cast(scale, float32)
    ),
    float64,
    float32,
)
# The difference is rounded to float32, the product is one of float64.
_FROM_CHANNELS = op_of(
    lambda q, scale, zero_point: s.cast(
        s.cast(s.cast(q, float32) - s.cast(zero_point, float32), float64) * scale, float32
    ),
    float64,
    float32,
)


# ---- One scale and one zero point ------------------------------------------------------------------------------------


def quantize_per_tensor(input: Tensor, scale: float | Tensor, zero_point: int, dtype: DType) -> Tensor:
    """The integers of a float32 tensor, in uint8, int8 or int32. A tensor of scales, float32, broadcasts against the input."""
    return _BY_TENSOR[dtype](input, scale, float(zero_point))


def dequantize_per_tensor(integers: Tensor, scale: float, zero_point: int) -> Tensor:
    """The float32 numbers that integers stand for. The difference of int32 and the zero point wraps around, as in PyTorch."""
    step = _FROM_INTEGERS if integers.dtype is int32 else _FROM_BYTES
    return step(integers, float(scale), float(zero_point))


# ---- A scale and a zero point for each index of one dim --------------------------------------------------------------


def along(values: Tensor, axis: int, dims: int) -> Tensor:
    """A view of a vector that broadcasts along `axis` of a tensor with so many dims."""
    return values.reshape([-1 if dim == axis % dims else 1 for dim in range(dims)])


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType
) -> Tensor:
    """The integers of a float32 tensor. scales: float64; zero_points: integers; both [input.size(axis)]."""
    dims = input.dim()
    return _BY_CHANNEL[dtype](input, along(scales, axis, dims), along(zero_points, axis, dims))


def dequantize_per_channel(integers: Tensor, scales: Tensor, zero_points: Tensor, axis: int) -> Tensor:
    dims = integers.dim()
    return _FROM_CHANNELS(integers, along(scales, axis, dims), along(zero_points, axis, dims))


def quantize_per_float_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: DType, bits: int = 8
) -> Tensor:
    """As `quantize_per_channel` with zero points that are float32, as the scales are. bits: of each integer, at most 8."""
    low, high = (0, 2**bits - 1) if dtype is uint8 else RANGES[dtype]
    step = _float_channel_step(dtype, low, high)
    return step(input, along(scales, axis, input.dim()), along(zero_points, axis, input.dim()))


def dequantize_per_float_channel(integers: Tensor, scales: Tensor, zero_points: Tensor, axis: int) -> Tensor:
    return _FROM_BYTES(
        integers, along(scales, axis, integers.dim()), along(zero_points, axis, integers.dim())
    )


# ---- Several integers in a byte --------------------------------------------------------------------------------------


def quantize_in_bits(input: Tensor, scale: float, zero_point: int, bits: int) -> Tensor:
    """The integers of `bits` bits, each in a byte of its own."""
    return _bits_step(2**bits - 1)(input, float(scale), zero_point)


def pack_bits(integers: Tensor, bits: int) -> Tensor:
    """The integers of `bits` bits in a vector of bytes: the first of each byte in its lowest bits. Missing ones are 0."""
    each = 8 // bits
    groups = constant_pad(integers.reshape(-1), [0, -integers.numel() % each], 0).reshape(-1, each)
    packed = groups[:, 0]
    for place in range(1, each):
        packed = packed | groups[:, place] << place * bits
    return packed.contiguous()


def unpack_bits(packed: Tensor, bits: int, shape: tuple[int, ...]) -> Tensor:
    """The integers that `pack_bits` packed, each in a byte of its own."""
    shifts = packed.new_tensor(range(0, 8, bits))
    integers = packed.unsqueeze(1) >> shifts & 2**bits - 1
    return integers.reshape(-1)[: math.prod(shape)].reshape(shape)
