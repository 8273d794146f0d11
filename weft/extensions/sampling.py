"""Points between pixels: their four corners, and the sums and gradients that are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.dtype import compute_type
from ..core.spec import contiguous_spec
from ..core.tensor import Tensor, empty
from ..engine.kernel import sharing
from ..engine.sampling import gather_code, scatter_code


class Points(NamedTuple):
    """What the bins of regions are sums of; `engine/sampling.py` explains the arrays."""

    positions: np.ndarray  # int32 [points, 4]
    weights: np.ndarray  # [points, 4]
    starts: np.ndarray  # int64 [regions * bins + 1]
    images: np.ndarray  # int64 [regions]
    counts: np.ndarray  # [regions]


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
    input: Tensor, points: Points, shape: Sequence[int], planes: int, per_channel: int, per_bin: int
) -> Tensor:
    """Sums of the pixels of `input` [images, planes, H, W], in the shape [regions, channels, *bins]."""
    dtype = compute_type(input.spec.dtype)
    source = input.to(dtype).contiguous()
    result = empty(contiguous_spec(tuple(shape), dtype))
    arguments = _arguments(points, shape, source.spec.shape, planes, per_channel, per_bin)
    entry = sharing(gather_code(dtype), points.weights.size * max(shape[1], 1) * dtype.itemsize)
    if result.spec.numel:
        _run(entry, result, source, arguments, shape[0] * shape[1])
    return result.to(input.spec.dtype)


def scatter(
    grad: Tensor, points: Points, shape: Sequence[int], planes: int, per_channel: int, per_bin: int
) -> Tensor:
    """The gradient [images, planes, H, W] of what `gather` read: `grad` added to where each sum came from."""
    dtype = compute_type(grad.spec.dtype)
    source = grad.to(dtype).contiguous()
    result = source.new_zeros(tuple(shape))
    arguments = _arguments(points, grad.spec.shape, shape, planes, per_channel, per_bin)
    channels = grad.spec.shape[1]
    entry = sharing(scatter_code(dtype), points.weights.size * max(channels, 1) * dtype.itemsize)
    if grad.spec.numel:
        _run(entry, source, result, arguments, channels)
    return result.to(grad.spec.dtype)


def _arguments(points: Points, bins: Sequence[int], image: Sequence[int], planes, per_channel, per_bin):
    regions, channels, n_bins = bins[0], bins[1], math.prod(bins[2:])
    plane = image[-1] * image[-2]
    limit = math.prod(image[:-2])
    # The kernel trusts its table, so look at it once more.
    assert len(points.starts) == regions * n_bins + 1 and (np.diff(points.starts) >= 0).all()
    assert points.starts[-1] == len(points.positions) == len(points.weights)
    assert not points.positions.size or points.positions.max() < plane
    last = (channels - 1) * per_channel + max(n_bins - 1, 0) * per_bin
    assert not regions or (points.images.min() >= 0 and points.images.max() * planes + last < limit)
    arrays = [
        np.ascontiguousarray(points.positions, np.int32),
        np.ascontiguousarray(points.weights),
        np.ascontiguousarray(points.starts, np.int64),
        np.ascontiguousarray(points.images, np.int64),
        np.ascontiguousarray(points.counts, points.weights.dtype),
    ]
    return arrays, np.array([channels, n_bins, plane, planes, per_channel, per_bin, regions], np.int64)


def _run(entry, bins: Tensor, pixels: Tensor, arguments, count: int) -> None:
    arrays, meta = arguments
    entry(
        bins._storage.ptr + bins._start,
        pixels._storage.ptr + pixels._start,
        *[each.ctypes.data for each in arrays],
        meta.ctypes.data,
        count,
    )
