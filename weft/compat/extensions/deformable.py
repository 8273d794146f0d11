"""Convolution that reads its input at points which the caller moves.

Source: Dai et al. 2017, Deformable Convolutional Networks; Zhu et al. 2019, version 2, with a mask.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import float16, float32, float64
from ...core.tensor import Tensor
from ...families.array_op import wide_array
from ...families.custom_vjp import custom_vjp
from ...ops.creation.creation import zeros_like
from .sampling import Points, check_cpu, gather, no_second_derivative, scatter


class _Geometry(NamedTuple):
    """Static arguments of the operator, in its order."""

    stride_h: int
    stride_w: int
    pad_h: int
    pad_w: int
    dilation_h: int
    dilation_w: int
    groups: int
    offset_groups: int
    use_mask: bool


class _Reading:
    """The points that a deformable convolution reads, one for each place of the kernel at each place of the result.

    Regions are pairs of an image and a group of offsets; their channels are the channels of the group.
    """

    def __init__(self, input: Tensor, weight: Tensor, offset: Tensor, geometry: _Geometry):
        self.images, self.channels, height, width = input.spec.shape
        self.kernel = weight.spec.shape[-2:]
        self.regions = self.images * geometry.offset_groups
        self.out = offset.spec.shape[-2:]
        self.places, self.size = math.prod(self.kernel), math.prod(self.out)
        moved = wide_array(offset).reshape(self.regions, *self.kernel, 2, *self.out)
        real = moved.dtype.type
        i, j = np.ogrid[: self.kernel[0], : self.kernel[1]]
        row, column = np.ogrid[: self.out[0], : self.out[1]]

        def regular(place, stride, pad, index, dilation):
            found = (place * stride - pad)[None, None] + (index * dilation)[..., None, None]
            return found.astype(moved.dtype)

        y = regular(row, geometry.stride_h, geometry.pad_h, i, geometry.dilation_h) + moved[:, :, :, 0]
        x = regular(column, geometry.stride_w, geometry.pad_w, j, geometry.dilation_w) + moved[:, :, :, 1]
        y, x = y.ravel(), x.ravel()
        # Beyond these every corner lies outside, and huge numbers would not fit an int64.
        y, x = (np.clip(np.nan_to_num(at), -2, size + 1) for at, size in ((y, height), (x, width)))
        low_y, low_x = np.floor(y), np.floor(x)
        self.far_y, self.far_x = y - low_y, x - low_x
        rows = np.stack([low_y, low_y, low_y + 1, low_y + 1], -1).astype(np.int64)
        columns = np.stack([low_x, low_x + 1, low_x, low_x + 1], -1).astype(np.int64)
        valid = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        self.corners = np.where(valid, rows * width + columns, -1).astype(np.int32)
        inside = (y > -1) & (y < height) & (x > -1) & (x < width)
        self.inside = np.where(inside[:, None], self.corners, np.int32(-1))
        self.one = real(1)

    def values(self) -> Points:
        near_y, near_x = self.one - self.far_y, self.one - self.far_x
        weights = [near_y * near_x, near_y * self.far_x, self.far_y * near_x, self.far_y * self.far_x]
        return self._points(self.inside, np.stack(weights, -1))

    def slopes(self) -> tuple[Points, Points]:
        """How values change when their points move down and to the right."""
        near_y, near_x = self.one - self.far_y, self.one - self.far_x
        down = np.stack([-near_x, -self.far_x, near_x, self.far_x], -1)
        right = np.stack([-near_y, near_y, -self.far_y, self.far_y], -1)
        return self._points(self.corners, down), self._points(self.corners, right)

    def _points(self, positions: np.ndarray, weights: np.ndarray) -> Points:
        starts = np.arange(self.regions * self.places * self.size + 1)
        counts = np.ones(self.regions, weights.dtype)
        return Points(positions, weights, starts, np.arange(self.regions), counts)

    def gather(self, input: Tensor, points: Points) -> Tensor:
        """[regions, channels of a group, places of the kernel, places of the result]."""
        planes = self.channels * self.images // max(self.regions, 1)
        groups = input.reshape(self.regions, planes, *input.spec.shape[2:])
        return gather(groups, points, planes, (self.places, self.size), False)


def _check(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, geometry: _Geometry) -> None:
    check_cpu("deform_conv2d", input, weight, offset, mask)
    shape, kernel, moved = input.spec.shape, weight.spec.shape, offset.spec.shape
    if len(shape) != 4 or len(kernel) != 4 or len(moved) != 4:
        raise RuntimeError(
            f"deform_conv2d: input, weight and offset must have 4 dims, but got shapes {list(shape)}, {list(kernel)} and "
            f"{list(moved)}"
        )
    if input.spec.dtype not in (float16, float32, float64):
        raise NotImplementedError(f"\"deform_conv2d\" not implemented for '{input.spec.dtype}'")
    if (
        kernel[1] * geometry.groups != shape[1]
        or kernel[0] % geometry.groups
        or shape[1] % geometry.offset_groups
    ):
        raise RuntimeError(
            f"deform_conv2d: input of shape {list(shape)} and weight of shape {list(kernel)} do not fit {geometry.groups} groups "
            f"and {geometry.offset_groups} groups of offsets"
        )
    out = tuple(
        (size + 2 * pad - dilation * (extent - 1) - 1) // stride + 1
        for size, pad, dilation, extent, stride in zip(
            shape[2:], geometry[2:4], geometry[4:6], kernel[2:], geometry[:2], strict=True
        )
    )
    places = geometry.offset_groups * kernel[2] * kernel[3]
    for what, found, wanted in (
        ("offset", moved, (shape[0], 2 * places, *out)),
        ("mask", mask.spec.shape, (shape[0], places, *out)),
    ):
        if tuple(found) != wanted and (what == "offset" or geometry.use_mask):
            raise RuntimeError(f"deform_conv2d: {what} must have shape {list(wanted)}, but got {list(found)}")


def _columns(reading: _Reading, values: Tensor, mask: Tensor, geometry: _Geometry) -> Tensor:
    """What the kernel is multiplied with: [images, groups, channels of a group and places, places of the result]."""
    if geometry.use_mask:
        values = mask.reshape(reading.regions, 1, reading.places, reading.size) * values
    return values.reshape(reading.images, geometry.groups, -1, reading.size)


def _rule(ct, out, input, weight, offset, mask, bias, *static):
    return deform_conv2d_backward(ct, input, weight, offset, mask, bias, *static) + (None,) * len(static)


@custom_vjp(joint=_rule)
def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *static: Any
) -> Tensor:
    """A convolution of `input` at the places of the kernel moved by `offset`, weighted by `mask` if `use_mask`.

    Shapes: input [N, C, H, W], weight [M, C / groups, kh, kw], offset [N, offset_groups * kh * kw * 2, h, w], mask
    [N, offset_groups * kh * kw, h, w], bias [M] -> [N, M, h, w]. static: stride, padding and dilation (each for rows and columns),
    groups, offset_groups, use_mask.
    """
    geometry = _Geometry(*static)
    _check(input, weight, offset, mask, geometry)
    reading = _Reading(input, weight, offset, geometry)
    columns = _columns(reading, reading.gather(input, reading.values()), mask, geometry)
    kernels = weight.reshape(geometry.groups, weight.spec.shape[0] // geometry.groups, -1)
    found = kernels.matmul(columns).reshape(reading.images, weight.spec.shape[0], *reading.out)
    return found + bias.reshape(1, -1, 1, 1)


@custom_vjp(joint=no_second_derivative)
def deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *static: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of input, weight, offset, mask and bias of `deform_conv2d`."""
    geometry = _Geometry(*static)
    reading = _Reading(input, weight, offset, geometry)
    points = reading.values()
    values = reading.gather(input, points)
    wide = grad.reshape(reading.images, geometry.groups, -1, reading.size)
    kernels = weight.reshape(geometry.groups, weight.spec.shape[0] // geometry.groups, -1)
    of_weight = wide.matmul(_columns(reading, values, mask, geometry).transpose(2, 3)).sum(0)
    of_values = kernels.transpose(1, 2).matmul(wide).reshape(values.spec.shape)
    of_mask = zeros_like(mask)
    if geometry.use_mask:
        of_mask = (of_values * values).sum(1).reshape(mask.spec.shape)
        of_values = of_values * mask.reshape(reading.regions, 1, reading.places, reading.size)
    planes = values.spec.shape[1]
    image = (reading.regions, planes, *input.spec.shape[2:])
    of_input = scatter(of_values, points, image, False).reshape(input.spec.shape)
    moved = [(of_values * reading.gather(input, slope)).sum(1) for slope in reading.slopes()]
    of_offset = moved[0].new_empty((reading.regions, reading.places, 2, reading.size))
    of_offset[:, :, 0], of_offset[:, :, 1] = moved
    return (
        of_input,
        of_weight.reshape(weight.spec.shape),
        of_offset.reshape(offset.spec.shape),
        of_mask,
        grad.sum((0, 2, 3)),
    )
