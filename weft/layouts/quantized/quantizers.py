"""Quantizers: what the integers of a quantized tensor stand for. They are the `detail` of its spec, so they are hashable.

The quantizer of a tensor with one scale and one zero point is a `QParams`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.dtype import QUANTIZED, DType, float32, float64, int64
from ...core.qscheme import SCHEMES, qscheme
from ...core.tensor import Tensor
from ...families.array_op import host_array
from ...interop.numpy import from_numpy
from ...ops.elementwise.qparams import QParams

PER_TENSOR = SCHEMES["per_tensor_affine"]
PER_CHANNEL = SCHEMES["per_channel_affine"]
PER_FLOAT_CHANNEL = SCHEMES["per_channel_affine_float_qparams"]


class PerChannel(NamedTuple):
    """Holds a scale and a zero point for each index of dim `axis`."""

    scales: bytes  # of float64, or of float32 if `has_floats`
    zero_points: bytes  # of int64, or of float32 if `has_floats`
    axis: int
    has_floats: bool  # whether the zero points are float32

    def scales_on(self, device) -> Tensor:
        """The scales as a new tensor."""
        return _read(self.scales, float32 if self.has_floats else float64).to(device)

    def zero_points_on(self, device) -> Tensor:
        """Return the zero points as a new tensor."""
        return _read(self.zero_points, float32 if self.has_floats else int64).to(device)

    def along(self, axis: int) -> PerChannel:
        return self._replace(axis=axis)

    def of_channels(self, channels: slice) -> PerChannel:
        """Return the quantizer of some of the channels."""
        scales = np.frombuffer(self.scales, np.float32 if self.has_floats else np.float64)[channels]
        points = np.frombuffer(self.zero_points, np.float32 if self.has_floats else np.int64)[channels]
        return self._replace(scales=scales.tobytes(), zero_points=points.tobytes())

    def of_channel(self, channel: int) -> Quantizer:
        """Return the quantizer of one channel."""
        one = self.of_channels(slice(channel, channel + 1))
        if self.has_floats:
            return one
        return QParams(one.scales_on("cpu").item(), int(one.zero_points_on("cpu").item()))


Quantizer = QParams | PerChannel


def _read(content: bytes, dtype: DType) -> Tensor:
    return from_numpy(np.frombuffer(content, dtype.numpy).copy())


def per_channel(scales: Tensor, zero_points: Tensor, axis: int) -> PerChannel:
    """The quantizer of two vectors. Zero points that are floats make float parameters."""
    has_floats = zero_points.dtype.is_floating_point
    kinds = (float32, float32) if has_floats else (float64, int64)
    scales, zero_points = (
        each.detach().to(kind) for each, kind in zip((scales, zero_points), kinds, strict=True)
    )
    first, second = (np.ascontiguousarray(host_array(each)).tobytes() for each in (scales, zero_points))
    return PerChannel(first, second, axis, has_floats)


def checked_channels(scales: Tensor, zero_points: Tensor, axis: int, shape: Sequence[int]) -> PerChannel:
    for name, each in (("scale", scales), ("zero_points", zero_points)):
        if each.dim() != 1:
            raise RuntimeError(f"{name} tensor must be 1-D: got {each.dim()} dims")
    if not 0 <= axis < len(shape):
        raise RuntimeError(
            f"Channel axis out of range in per channel affine quantization: {axis} of {len(shape)} dims"
        )
    if len(scales) != shape[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {shape[axis]} got, {len(scales)}"
        )
    if len(zero_points) != shape[axis]:
        raise RuntimeError(
            f"length of zero_points must equal to channel expected {shape[axis]} got, {len(zero_points)}"
        )
    return per_channel(scales, zero_points, axis)


def scheme_of(quantizer: Quantizer) -> qscheme:
    if isinstance(quantizer, QParams):
        return PER_TENSOR
    return PER_FLOAT_CHANNEL if quantizer.has_floats else PER_CHANNEL


@functools.cache
def quantized_dtype(integers: DType) -> DType | None:
    """The dtype of quantized tensors whose integers are stored in this one."""
    return next((dtype for dtype, stored in QUANTIZED.items() if stored is integers), None)
