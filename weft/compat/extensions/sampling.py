"""Points between pixels: their four corners, and the sums and gradients that are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...core.device import CPU
from ...core.dtype import compute_type
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, empty
from ...engine.kernel import sharing
from ...engine.sampling import gather_code, scatter_code


class Points(NamedTuple):
    """What the bins of regions are sums of; `engine/sampling.py` explains the arrays."""

    positions: np.ndarray  # int32 [points, 4]
    weights: np.ndarray  # [points, 4]
    starts: np.ndarray  # int64 [regions * bins + 1]
    images: np.ndarray  # int64 [regions]
    counts: np.ndarray  # [regions]


def check_cpu(function: str, *tensors: Tensor) -> None:
    """Raises: NotImplementedError for a tensor whose elements cannot be read here."""
    for tensor in tensors:
        if tensor.spec.device is not CPU:
            raise NotImplementedError(f"{function} on device {tensor.spec.device}: weft has no kernel for it")


def no_second_derivative(ct: Any, out: Any, *inputs: Any) -> NoReturn:
    """The rule of an operator that is a derivative. torchvision's have no derivatives of their own, either."""
    raise RuntimeError("double backwards on torchvision's operators is not supported")


def corners(y: np.ndarray, x: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and weights of the pixels around points. Beyond the edges pixels are repeated; a pixel further they are 0."""
    outside = ~((y >= -1) & (y <= height) & (x >= -1) & (x <= width))
    (y0, y1, near_y, far_y), (x0, x1, near_x, far_x) = _ends(y, height), _ends(x, width)
    positions = np.stack([y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1], -1)
    weights = np.stack([near_y * near_x, near_y * far_x, far_y * near_x, far_y * far_x], -1)
    positions[outside] = -1
    weights[outside] = 0
    return positions.astype(np.int32), weights


def _ends(at: np.ndarray, size: int) -> tuple[np.ndarray, ...]:
    """The pixels before and behind a coordinate, and their weights."""
    at = np.maximum(np.nan_to_num(at), 0)
    low = np.minimum(at, size - 1).astype(np.int64)
    last = low >= size - 1
    far = np.where(last, at.dtype.type(0), at - low.astype(at.dtype))
    return low, np.where(last, low, low + 1), 1 - far, far


def gather(
    input: Tensor, points: Points, channels: int, bins: Sequence[int], position_sensitive: bool
) -> Tensor:
    """Sums of the pixels of `input` [images, planes, H, W], in the shape [regions, channels, *bins].

    position_sensitive: bin p reads planes p, p + bins, ... as its channels; otherwise planes are channels.
    """
    dtype = compute_type(input.spec.dtype)
    source = _pixels_last(input.to(dtype), channels, position_sensitive)
    regions, n_bins = len(points.images), math.prod(bins)
    result = empty(contiguous_spec((regions, n_bins, channels), dtype))
    if result.spec.numel:
        entry = sharing(gather_code(dtype), points.weights.size * channels * dtype.itemsize)
        _run(entry, result, source, points, channels, n_bins, position_sensitive, regions)
    return result.transpose(1, 2).contiguous().reshape(regions, channels, *bins).to(input.spec.dtype)


def scatter(grad: Tensor, points: Points, shape: Sequence[int], position_sensitive: bool) -> Tensor:
    """The gradient [images, planes, H, W] of what `gather` read: `grad` added to where each sum came from."""
    dtype = compute_type(grad.spec.dtype)
    regions, channels, *bins = grad.spec.shape
    n_bins = math.prod(bins)
    source = grad.to(dtype).reshape(regions, channels, n_bins).transpose(1, 2).contiguous()
    images, planes, height, width = shape
    result = source.new_zeros((images, height * width, planes))
    if source.spec.numel:
        entry = sharing(scatter_code(dtype), points.weights.size * channels * dtype.itemsize)
        _run(entry, source, result, points, channels, n_bins, position_sensitive, channels)
    if position_sensitive:
        result = result.reshape(images, height * width, n_bins, channels).transpose(2, 3)
    result = result.reshape(images, height * width, planes).transpose(1, 2).contiguous()
    return result.reshape(images, planes, height, width).to(grad.spec.dtype)


def _pixels_last(input: Tensor, channels: int, position_sensitive: bool) -> Tensor:
    """[images, pixels, planes], in which the channels of one bin lie side by side."""
    images, planes, height, width = input.spec.shape
    pixels = input.reshape(images, planes, height * width).transpose(1, 2)
    if position_sensitive:
        pixels = pixels.reshape(images, height * width, channels, planes // channels).transpose(2, 3)
    return pixels.contiguous().reshape(images, height * width, planes)


def _run(
    entry, bins: Tensor, pixels: Tensor, points: Points, channels, n_bins, position_sensitive, count
) -> None:
    images, plane, planes = pixels.spec.shape
    regions = len(points.images)
    # The kernel trusts its table, so look at it once more.
    assert len(points.starts) == regions * n_bins + 1 and (np.diff(points.starts) >= 0).all()
    assert points.starts[-1] == len(points.positions) == len(points.weights)
    assert not points.positions.size or points.positions.max() < plane
    assert points.images.min() >= 0 and points.images.max() < images
    assert planes == channels * (n_bins if position_sensitive else 1)
    arrays = [
        np.ascontiguousarray(points.positions, np.int32),
        np.ascontiguousarray(points.weights),
        np.ascontiguousarray(points.starts, np.int64),
        np.ascontiguousarray(points.images, np.int64),
        np.ascontiguousarray(points.counts, points.weights.dtype),
    ]
    per_bin = channels if position_sensitive else 0
    meta = np.array([channels, n_bins, plane, planes, per_bin, regions], np.int64)
    entry(
        bins._storage.ptr + bins._byte_offset,
        pixels._storage.ptr + pixels._byte_offset,
        *[each.ctypes.data for each in arrays],
        meta.ctypes.data,
        count,
    )
