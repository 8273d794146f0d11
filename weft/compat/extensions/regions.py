"""Regions of interest: what lies under boxes in a batch of feature maps, pooled to a fixed number of bins.

Shapes: input [N, C, H, W]; rois [K, 5], rows of (index of the image, x1, y1, x2, y2) -> [K, C, pooled_height, pooled_width].
The position-sensitive operators (`ps_`) read other channels in each bin: [N, C * pooled_height * pooled_width, H, W].
Source: He et al. 2017, Mask R-CNN (align); Girshick 2015, Fast R-CNN (pool); Dai et al. 2016, R-FCN (position-sensitive).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import compute_type, float16, float32, float64, int32
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, empty
from ...engine.greatest import greatest_code
from ...engine.kernel import sharing
from ...families.array_op import array, tensor_of
from ...families.custom_vjp import custom_vjp
from .sampling import Points, check_cpu, corners, gather, no_second_derivative, scatter

_FLOATS = (float16, float32, float64)


def _check(function: str, input: Tensor, rois: Tensor, position_sensitive: int = 0) -> None:
    check_cpu(function, input, rois)
    if input.spec.dtype not in _FLOATS:
        raise NotImplementedError(f"\"{function}\" not implemented for '{input.spec.dtype}'")
    if input.spec.ndim != 4:
        raise RuntimeError(f"{function}: input must be [N, C, H, W], but got shape {list(input.spec.shape)}")
    if rois.spec.ndim != 2 or rois.spec.shape[1] != 5:
        raise RuntimeError(
            f"{function}: rois must have shape as Tensor[K, 5], but got {list(rois.spec.shape)}"
        )
    if input.spec.dtype is not rois.spec.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.spec.dtype} does not equal {rois.spec.dtype}"
        )
    if position_sensitive and input.spec.shape[1] % position_sensitive:
        raise RuntimeError(
            "input channels must be a multiple of pooling height * pooling width, but got "
            f"{input.spec.shape[1]} channels and {position_sensitive} bins"
        )


def _boxes(rois: Tensor, images: int) -> tuple[np.ndarray, np.ndarray]:
    """The index of the image of each region, and its box [K, 4], in a type that NumPy computes with."""
    check_cpu("rois", rois)
    rows = array(rois if rois.spec.dtype is not float16 else rois.to(float32))
    index = rows[:, 0].astype(np.int64)
    if ((index < 0) | (index >= images)).any():
        bad = index[(index < 0) | (index >= images)][0]
        raise IndexError(f"rois: index {bad} of an image is outside of the batch, which has {images} images")
    return index, rows[:, 1:]


# ---- Means of points between pixels ----------------------------------------------------------------------------------------


def _align_points(
    rois, shape, scale: float, bins: tuple[int, int], ratio: int, aligned: bool, sensitive: bool
):
    """The points at which `roi_align` reads, a grid in each bin."""
    images, _, height, width = shape
    index, boxes = _boxes(rois, images)
    real = boxes.dtype.type
    # The position-sensitive operator always shifts by half a pixel.
    offset = real(0.5) if aligned or sensitive else real(0)
    starts = boxes * real(scale) - offset
    x1, y1, x2, y2 = starts.T
    extents = [y2 - y1, x2 - x1]
    if not aligned and not sensitive:
        extents = [np.maximum(extent, real(1)) for extent in extents]
    sizes = [extent / real(count) for extent, count in zip(extents, bins, strict=True)]
    if ratio > 0:
        grids = [np.full(len(index), ratio)] * 2
    else:
        grids = [np.maximum(np.ceil(size), 0).astype(np.int64) for size in sizes]
    counts = np.maximum(grids[0] * grids[1], 1).astype(boxes.dtype)
    each = grids[0] * grids[1]  # points of a bin
    n_bins = bins[0] * bins[1]
    begin = np.concatenate([[0], np.cumsum(np.repeat(each, n_bins))])
    bin_of = np.repeat(np.arange(len(index) * n_bins), np.repeat(each, n_bins))
    region, place = bin_of // max(n_bins, 1), bin_of % max(n_bins, 1)
    within = np.arange(begin[-1]) - begin[bin_of]
    across = grids[1][region]

    def coordinates(first, size, grid, bin_index, step):
        spacing = (step.astype(boxes.dtype) + real(0.5)) * size[region]
        return (
            first[region]
            + bin_index.astype(boxes.dtype) * size[region]
            + spacing / grid[region].astype(boxes.dtype)
        )

    y = coordinates(y1, sizes[0], grids[0], place // bins[1], within // np.maximum(across, 1))
    x = coordinates(x1, sizes[1], grids[1], place % bins[1], within % np.maximum(across, 1))
    positions, weights = corners(y, x, height, width)
    return Points(positions, weights, begin, index, counts)


def _roi_align_rule(
    ct, out, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned, *, specs
):
    shape = specs[0].shape
    return roi_align_backward(
        ct, rois, spatial_scale, pooled_height, pooled_width, *shape, sampling_ratio, aligned
    )


@custom_vjp(_roi_align_rule, None)
def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Means over a grid of points in each bin, interpolated between pixels.

    sampling_ratio: points along a side of a bin; 0 or less: as many as the bin has pixels. aligned: pixel (0, 0) lies at
    (0.5, 0.5).
    """
    _check("roi_align", input, rois)
    bins = (pooled_height, pooled_width)
    points = _align_points(rois, input.spec.shape, spatial_scale, bins, sampling_ratio, aligned, False)
    return gather(input, points, input.spec.shape[1], bins, False)


@custom_vjp(joint=no_second_derivative)
def roi_align_backward(
    grad,
    rois,
    spatial_scale,
    pooled_height,
    pooled_width,
    batch_size,
    channels,
    height,
    width,
    sampling_ratio,
    aligned,
):
    """The gradient of the input of `roi_align`."""
    shape, bins = (batch_size, channels, height, width), (pooled_height, pooled_width)
    points = _align_points(rois, shape, spatial_scale, bins, sampling_ratio, aligned, False)
    return scatter(grad, points, shape, False)


def _channel_mapping(regions: int, channels: int, bins: tuple[int, int]) -> Tensor:
    """Which channel each element of a position-sensitive result is read from."""
    mapping = np.arange(channels, dtype=np.int32).reshape(channels // (bins[0] * bins[1]), *bins)
    return tensor_of(np.broadcast_to(mapping, (regions, *mapping.shape)).copy(), int32)


def _ps_roi_align_rule(
    ct, out, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, *, specs
):
    shape = specs[0].shape
    return ps_roi_align_backward(
        ct[0], rois, None, spatial_scale, pooled_height, pooled_width, sampling_ratio, *shape
    )


@custom_vjp(_ps_roi_align_rule, None)
def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """`roi_align` in which each bin reads channels of its own. The second result names them."""
    bins = (pooled_height, pooled_width)
    n_bins = pooled_height * pooled_width
    _check("ps_roi_align", input, rois, n_bins)
    channels = input.spec.shape[1]
    points = _align_points(rois, input.spec.shape, spatial_scale, bins, sampling_ratio, False, True)
    found = gather(input, points, channels // n_bins, bins, True)
    return found, _channel_mapping(len(points.images), channels, bins)


@custom_vjp(joint=no_second_derivative)
def ps_roi_align_backward(
    grad,
    rois,
    channel_mapping,
    spatial_scale,
    pooled_height,
    pooled_width,
    sampling_ratio,
    batch_size,
    channels,
    height,
    width,
):
    """The gradient of the input of `ps_roi_align`."""
    shape, bins = (batch_size, channels, height, width), (pooled_height, pooled_width)
    points = _align_points(rois, shape, spatial_scale, bins, sampling_ratio, False, True)
    return scatter(grad, points, shape, True)


# ---- Whole pixels -----------------------------------------------------------------------------------------------------------


def _rounded(values: np.ndarray) -> np.ndarray:
    """Halves away from zero, as C's `round`."""
    return np.trunc(values + np.copysign(values.dtype.type(0.5), values)).astype(np.int64)


def _pool_bounds(rois: Tensor, shape, scale: float, bins: tuple[int, int], sensitive: bool):
    """The image of each region, and along each of two dims the first pixel and the end of each bin, both [K, bins]."""
    index, boxes = _boxes(rois, shape[0])
    real = boxes.dtype.type
    corner = _rounded(boxes * real(scale))
    first = corner[:, :2]
    extents = np.maximum(corner[:, 2:] - first + (0 if sensitive else 1), 1).astype(boxes.dtype)
    bounds = []
    for side, (count, limit) in enumerate(zip(bins, shape[2:], strict=True)):
        axis = 1 - side
        size = (extents[:, axis] / real(count))[:, None]
        steps = np.arange(count + 1).astype(boxes.dtype)
        start = first[:, axis, None]
        low, high = np.floor(steps[:-1] * size) + start, np.ceil(steps[1:] * size) + start
        bounds.append((np.clip(low, 0, limit).astype(np.int64), np.clip(high, 0, limit).astype(np.int64)))
    return index, bounds


def _bins(index: np.ndarray, bounds: Any):
    """(region, image, row and column of the bin, slices of its pixels), for each bin with pixels."""
    (top, bottom), (left, right) = bounds
    for k, image in enumerate(index):
        for i in range(top.shape[1]):
            for j in range(left.shape[1]):
                rows, columns = slice(top[k, i], bottom[k, i]), slice(left[k, j], right[k, j])
                if rows.start < rows.stop and columns.start < columns.stop:
                    yield k, image, i, j, rows, columns


def _roi_pool_rule(ct, out, input, rois, spatial_scale, pooled_height, pooled_width, *, specs):
    return roi_pool_backward(ct[0], rois, out[1], spatial_scale, pooled_height, pooled_width, *specs[0].shape)


@custom_vjp(_roi_pool_rule, None, results=(1,))
def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The greatest pixel of each bin, and where in its plane it lies (-1: the bin has no pixel)."""
    _check("roi_pool", input, rois)
    bins, shape = (pooled_height, pooled_width), input.spec.shape
    index, bounds = _pool_bounds(rois, shape, spatial_scale, bins, False)
    rows, columns = (np.stack(each, -1) for each in bounds)
    grid = (len(index), *bins, 2)
    rectangles = np.concatenate(
        [np.broadcast_to(rows[:, :, None], grid), np.broadcast_to(columns[:, None], grid)], -1
    ).astype(np.int64)
    dtype = compute_type(input.spec.dtype)
    source = input.to(dtype).contiguous().resolve_neg()
    found = empty(contiguous_spec((len(index), shape[1], *bins), dtype))
    where = empty(contiguous_spec(found.spec.shape, int32))
    meta = np.array([shape[1], math.prod(bins), *shape[2:]], np.int64)
    if found.spec.numel:
        sharing(greatest_code(dtype), source.spec.nbytes)(
            found._storage.ptr,
            where._storage.ptr,
            source._storage.ptr + source._byte_offset,
            rectangles.ctypes.data,
            index.ctypes.data,
            meta.ctypes.data,
            len(index) * shape[1],
        )
    return found.to(input.spec.dtype), where


@custom_vjp(joint=no_second_derivative)
def roi_pool_backward(
    grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    """The gradient of the input of `roi_pool`."""
    index, _ = _boxes(rois, batch_size)
    where = array(argmax)
    planes = index[:, None, None, None] * channels + np.arange(channels)[:, None, None]
    flat = (planes * (height * width) + where)[where >= 0]
    found = np.zeros(batch_size * channels * height * width, array(grad).dtype)
    np.add.at(found, flat, array(grad)[where >= 0])
    return tensor_of(found.reshape(batch_size, channels, height, width), grad.spec.dtype)


def _ps_roi_pool_rule(ct, out, input, rois, spatial_scale, pooled_height, pooled_width, *, specs):
    return ps_roi_pool_backward(
        ct[0], rois, None, spatial_scale, pooled_height, pooled_width, *specs[0].shape
    )


@custom_vjp(_ps_roi_pool_rule, None)
def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The mean of each bin, which reads channels of its own. The second result names them."""
    bins, shape = (pooled_height, pooled_width), input.spec.shape
    _check("ps_roi_pool", input, rois, pooled_height * pooled_width)
    # As in torchvision, forward never reads the last row and column, although backward gives their pixels a gradient.
    last = (*shape[:2], shape[2] - 1, shape[3] - 1)
    index, bounds = _pool_bounds(rois, last, spatial_scale, bins, True)
    values = array(input).reshape(shape[0], -1, *bins, *shape[2:])
    found = np.zeros((len(index), values.shape[1], *bins), values.dtype)
    for k, image, i, j, rows, columns in _bins(index, bounds):
        pixels = values[image, :, i, j, rows, columns].reshape(values.shape[1], -1)
        # cumsum adds one pixel after the other, as torchvision's loop in C++ does.
        found[k, :, i, j] = pixels.cumsum(1)[:, -1] / pixels.shape[1]
    return tensor_of(found, input.spec.dtype), _channel_mapping(len(index), shape[1], bins)


@custom_vjp(joint=no_second_derivative)
def ps_roi_pool_backward(
    grad,
    rois,
    channel_mapping,
    spatial_scale,
    pooled_height,
    pooled_width,
    batch_size,
    channels,
    height,
    width,
):
    """The gradient of the input of `ps_roi_pool`."""
    bins = (pooled_height, pooled_width)
    index, bounds = _pool_bounds(rois, (batch_size, channels, height, width), spatial_scale, bins, True)
    values = array(grad)
    found = np.zeros((batch_size, channels // (bins[0] * bins[1]), *bins, height, width), values.dtype)
    for k, image, i, j, rows, columns in _bins(index, bounds):
        share = values[k, :, i, j] / ((rows.stop - rows.start) * (columns.stop - columns.start))
        found[image, :, i, j, rows, columns] += share[:, None, None]
    return tensor_of(found.reshape(batch_size, channels, height, width), grad.spec.dtype)
