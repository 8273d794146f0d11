"""Histograms and counts: histc, histogram, histogramdd, bincount."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arguments import integer, integers, number, wrong_type
from ...core.batched import beneath
from ...core.checking import check_tensor
from ...core.derivative import Derivative, nondifferentiable
from ...core.dtype import FLOAT8, DType, float32, float64, int64, numpy_dtype
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, address
from ...families.array_op import array, array_op, here, tensor_of
from ..creation.creation import check_room, zeros
from ..creation.ranges import linspace
from ..order.kernels import bare, places
from ..order.sorting import not_implemented
from ..tensor.rules import unknown

# ---- Bins ----------------------------------------------------------------------------------------------------------


def _bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each value; -1 outside. The last bin holds its right edge too."""
    positions = _search(values, edges)
    positions[values == edges[-1]] = len(edges) - 2
    positions[~((values >= edges[0]) & (values <= edges[-1]))] = -1
    return positions


def _search(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """For each value the index of the last edge that is not above it; any index for values outside of the edges.

    If the bins have about equal widths, the index is computed from the value and corrected by at most one. The computed index
    grows with the value, so it is enough to check at the edges that it is at most one too small.
    """
    with np.errstate(all="ignore"):
        scale = (len(edges) - 1) / (edges[-1] - edges[0])

        def guess(at: np.ndarray) -> np.ndarray:
            return np.clip(((at - edges[0]) * scale).astype(np.int64), 0, max(len(edges) - 2, 0))

        off = guess(edges) - np.arange(len(edges))
        if len(edges) < 2 or len(values) < len(edges) or (off < -1).any() or (off > 0).any():
            return np.searchsorted(edges, values, "right") - 1
        positions = guess(values)
    positions += values >= edges[positions + 1]
    positions -= values < edges[positions]
    return positions


def _equal_bins(values: Tensor, low: float, high: float, count: int) -> Tensor:
    """The bin of each value among bins of equal width, in the arithmetic of the dtype; -1 outside."""
    kind = numpy_dtype(values.spec.dtype).type
    with np.errstate(all="ignore"):
        low, high, width = (float(each) for each in (kind(low), kind(high), kind(high) - kind(low)))
    inside = (values >= low) & (values <= high)
    position = (values - low) * float(kind(count)) / width
    return position.where(inside, -1).to(int64).clamp(max=count - 1)


def _counted(bins: np.ndarray, count: int, weights: np.ndarray | None) -> np.ndarray:
    inside = bins >= 0
    weights = None if weights is None else weights[inside]
    return np.bincount(bins[inside], weights, minlength=count).astype(np.float64)


def _check_count(count: int, dim: int, name: str = "torch.histogram()") -> None:
    if count <= 0:
        raise RuntimeError(f"{name}: bins must be > 0, but got {count} for dimension {dim}")


def _widened(low: float, high: float) -> tuple[float, float]:
    """The range; a single point is widened by 0.5 to both sides."""
    return (low - 0.5, high + 0.5) if low == high else (low, high)


@public("function method", out=True)
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements fall into each of `bins` equal intervals from `min` to `max`, in the input's dtype.

    If `min` equals `max`, the range is that of the data. Elements outside, and NaN, are not counted.

    >>> import weft as torch
    >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    check_tensor(input, "histc")
    if isinstance(bins, float):
        raise TypeError("histc(): argument 'bins' must be int, not float")
    _check_count(bins, 0)
    dtype = input.spec.dtype
    if not dtype.is_floating_point:
        raise not_implemented("histogram_cpu", dtype)
    low, high = float(min), float(max)
    if low == high and input.spec.numel and input.spec.device.backend.has_memory:
        low, high = float(input.detach().amin()), float(input.detach().amax())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low >= high:
        raise RuntimeError(f"torch.histc: max must be larger than min\nmin = {low}, max = {high}")
    values = input.detach().to(float32) if dtype in FLOAT8 else input.detach()
    check_room(bins, dtype=values.spec.dtype)
    return _histc(_equal_bins(values, low, high, bins), bins, values.spec.dtype).to(dtype)


def _occurrences(input: Tensor, count: int) -> Tensor:
    """How often 0, 1, ... `count` - 1 occur, on a device that prefers kernels."""
    values, counts = input.detach().to(int64).contiguous(), input.new_zeros(count, dtype=int64)
    input.spec.device.backend.extras["occurrences"](
        address(counts), address(values), values.spec.numel, count
    )
    return counts


@array_op(derivative=nondifferentiable)
def _histc(bins: Tensor, count: int, dtype: DType) -> Tensor:
    """How many of the elements are 0, 1, ... `count` - 1."""
    if bins.spec.device.backend.prefers_kernels:
        return _occurrences(bins, count).to(dtype)
    values, counted = array(bins).reshape(-1), here().backend.extras.get("count")
    counts = _counted(values, count, None) if counted is None else counted(values, 0, count)[:-1]
    return tensor_of(counts, dtype)


@_histc.spec_rule
def _histc_spec(bins: Spec, count: int, dtype: DType) -> Spec:
    return contiguous_spec((count,), dtype)


# ---- Histograms in several dimensions ------------------------------------------------------------------------------


@array_op(derivative=Derivative(joint=unknown("histogram")))
def _histogram(points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """How many of the points [n, dims] lie between the `edges` of each dim."""
    if points.spec.device.backend.prefers_kernels:
        return _histogram_by_kernels(bare(points), [bare(edge) for edge in edges], weight, density)
    values, bounds = array(points), [array(edge) for edge in edges]
    sizes = [len(bound) - 1 for bound in bounds]
    flat = np.zeros(len(values), np.int64)
    for column, bound, size in zip(values.T, bounds, sizes, strict=True):
        bins = _bins(column, bound)
        flat = np.where((bins < 0) | (flat < 0), -1, flat * size + bins)
    counts = _counted(flat, math.prod(sizes), None if weight is None else array(weight).reshape(-1)).reshape(
        sizes
    )
    if density:
        # Without points, or with empty bins, the density is NaN or infinite.
        with np.errstate(divide="ignore", invalid="ignore"):
            counts /= counts.sum()
            for dim, bound in enumerate(bounds):
                counts /= np.diff(bound).reshape([-1 if k == dim else 1 for k in range(len(sizes))])
    return tensor_of(counts, points.spec.dtype)


def _histogram_by_kernels(
    points: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool
) -> Tensor:
    sizes = [edge.spec.numel - 1 for edge in edges]
    flat = zeros(len(points), dtype=int64, device=points.device)
    for dim, (bound, size) in enumerate(zip(edges, sizes, strict=True)):
        values = points[:, dim]
        bins = places(bound, values, True, int64) - 1
        bins = bins.masked_fill(values == bound[-1], size - 1)
        is_outside = ~((values >= bound[0]) & (values <= bound[-1])) | (flat < 0)
        flat = (flat * size + bins).masked_fill(is_outside, -1)
    if weight is None:
        counts = _occurrences(flat, math.prod(sizes)).double()
    else:
        counts = _weighed(flat + 1, bare(weight), math.prod(sizes) + 1)[1:]
    counts = counts.reshape(sizes)
    if density:
        counts = counts / counts.sum()
        for dim, bound in enumerate(edges):
            counts = counts / bound.diff().reshape([-1 if k == dim else 1 for k in range(len(sizes))])
    return counts.to(points.spec.dtype)


def _weighed(input: Tensor, weights: Tensor, count: int) -> Tensor:
    """The sum of the weights of 0, 1, ... `count` - 1 in their order, in float64."""
    sums = zeros(count, dtype=float64, device=input.device)
    return sums.index_add_(0, input, weights.reshape(-1).double())


@_histogram.spec_rule
def _histogram_spec(points: Spec, edges: Sequence[Spec], weight: Spec | None, density: bool) -> Spec:
    return contiguous_spec([edge.numel - 1 for edge in edges], points.dtype)


def _ranges(points: Tensor, range: Sequence[float] | None) -> list[tuple[float, float]]:
    """Return the lowest and highest edge of each dim: those in `range`, else the extrema of the data."""
    dims = points.spec.shape[-1]
    if range is not None:
        if not isinstance(range, (tuple, list)):
            raise wrong_type(range, "histogram", "range", "tuple of floats")
        if len(range) != 2 * dims:
            raise RuntimeError(
                f"torch.histogramdd: for a {dims}-dimensional histogram range should have {2 * dims} elements, but got "
                f"{len(range)}"
            )
        range = [number(each, "histogram", "range") for each in range]
        ranges = [(float(low), float(high)) for low, high in zip(range[::2], range[1::2], strict=True)]
    elif points.spec.numel == 0 or not points.spec.device.backend.has_memory:
        ranges = [(0.0, 1.0)] * dims
    else:
        ranges = list(zip(*(each.tolist() for each in points.detach().aminmax(dim=0)), strict=True))
    for dim, (low, high) in enumerate(ranges):
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"torch.histogramdd: dimension {dim}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(
                f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}"
            )
    return [_widened(*pair) for pair in ranges]


def _check_edges(points: Tensor, edges: Sequence[Tensor]) -> None:
    dims = points.spec.shape[-1]
    if len(edges) != dims:
        raise RuntimeError(
            f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got "
            f"{len(edges)}"
        )
    for dim, edge in enumerate(edges):
        what = f"the bins tensor for dimension {dim}"
        if edge.spec.dtype is not points.spec.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{points.spec.dtype} and bins for dimension {dim} with dtype {edge.spec.dtype}"
            )
        if len(edge.spec.shape) != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {len(edge.spec.shape)} dimensions in "
                f"{what}"
            )
        if not edge.spec.numel:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in {what}"
            )


def _count_points(
    points: Tensor, bins: Sequence[Any], range: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """(counts, edges) of points [..., dims]; `bins` are numbers of bins or tensors of edges."""
    dtype = points.spec.dtype
    if weight is not None and weight.spec.dtype is not dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
            f"but got input({dtype}), and weight({weight.spec.dtype})"
        )
    if weight is not None and weight.spec.shape != points.spec.shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
            f"its innermost dimension, but got input with shape {list(points.spec.shape)} and weight with shape "
            f"{list(weight.spec.shape)}"
        )
    have_edges = all(isinstance(each, Tensor) for each in bins)
    if have_edges:
        _check_edges(points, bins)
        edges = bins
    for dim, each in enumerate(bins):
        _check_count(each.spec.numel - 1 if have_edges else each, dim)
    if dtype not in (float32, float64):
        raise not_implemented("histogramdd", dtype)
    points = points.reshape(-1, points.spec.shape[-1])
    if not have_edges:
        bounds = _ranges(points, range)
        edges = [
            linspace(*bound, count + 1, dtype=dtype, device=points.device)
            for count, bound in zip(bins, bounds, strict=True)
        ]
    return _histogram(points, tuple(edges), weight, bool(density)), tuple(edges)


@public("function method", out=True)
def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """(hist, bin_edges): how many elements, or how much `weight`, fall into each bin; the last one is closed.

    bins: the number of equal bins over `range` (else that of the data), or the edges themselves.
    density: divided by the sum and the widths, so that the integral is 1.

    >>> import weft as torch
    >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    check_tensor(input, "histogram")
    weight = None if weight is None else weight.reshape(-1)
    bins = bins.clone() if isinstance(bins, Tensor) else integer(bins, "histogram", "bins", 2)
    hist, edges = _count_points(input.reshape(-1, 1), [bins], range, weight, density)
    return return_type("histogram", ("hist", "bin_edges"))((hist, edges[0]))


@public("function")
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Compute (hist, bin_edges) of points in several dimensions.

    Shapes: input [..., dims]; bins one number, one per dim, or edges for each dim; hist [bins...].
    range: lowest and highest edge of each dim, in one list.

    >>> import weft as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    check_tensor(input, "histogramdd")
    if len(input.spec.shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    dims = input.spec.shape[-1]
    bins_of_dims = (
        [*bins] if isinstance(bins, (tuple, list)) else [integer(bins, "histogramdd", "bins", 2)] * dims
    )
    if not all(isinstance(each, Tensor) for each in bins_of_dims):
        bins_of_dims = [*integers((bins_of_dims,), "histogramdd", "bins")]
    if len(bins_of_dims) != dims and not any(isinstance(each, Tensor) for each in bins_of_dims):
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    result = _count_points(input, bins_of_dims, range, weight, density)
    return return_type("histogramdd", ("hist", "bin_edges"))(result)


# ---- Occurrences of integers ---------------------------------------------------------------------------------------


# Integers: bincount counts those below this number at once, and looks for the greatest only if there are others.
_SMALL_INTEGERS = 1024


@array_op(derivative=nondifferentiable)
def _bincount(input: Tensor, weights: Tensor | None, minlength: int, dtype: DType) -> Tensor:
    if input.spec.device.backend.prefers_kernels:
        return _counted_on_device(input.detach(), weights, minlength).to(dtype)
    values, count = array(input), here().backend.extras.get("count")
    check_room(minlength, dtype=dtype)
    if weights is None and count is not None:
        counts = count(values, 0, _SMALL_INTEGERS)
        if not counts[-1]:
            return tensor_of(_padded(np.trim_zeros(counts, "b"), minlength), dtype)
    if values.dtype.kind == "i" and values.min() < 0:
        raise _not_countable()
    greatest = int(values.max())
    check_room(max(greatest + 1, minlength), dtype=dtype)
    if weights is None and count is not None:
        return tensor_of(_padded(count(values, 0, greatest + 1)[:-1], minlength), dtype)
    # Copy, because NumPy reads outside of its table if another thread makes a value larger than the maximum.
    values = values.astype(np.int64)
    counts = np.bincount(values, None if weights is None else array(weights), minlength)
    return tensor_of(counts, dtype)


def _counted_on_device(input: Tensor, weights: Tensor | None, minlength: int) -> Tensor:
    input = input.to(int64)
    low, high = (int(each) for each in input.aminmax())
    if low < 0:
        raise _not_countable()
    size = max(high + 1, minlength)
    check_room(size, dtype=int64)
    return _occurrences(input, size) if weights is None else _weighed(input, bare(weights), size)


def _padded(counts: np.ndarray, length: int) -> np.ndarray:
    """Return the counts with zeros behind them, at least `length` in all."""
    return np.concatenate([counts, np.zeros(max(length - len(counts), 0), np.int64)])


def _not_countable() -> RuntimeError:
    return RuntimeError("bincount only supports 1-d non-negative integral inputs.")


@public("function method")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each integer from 0 to the greatest occurs, or the sum of its `weights`.

    Shapes: input [n], weights [n] -> [max(input.max() + 1, minlength)].

    >>> import weft as torch
    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    check_tensor(input, "bincount")
    dtype = input.spec.dtype
    if not dtype.is_integral:
        raise not_implemented("bincount_cpu", dtype)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.spec.shape == (0,):
        return zeros(minlength, dtype=int64, device=input.device)
    if len(input.spec.shape) != 1:
        raise _not_countable()
    if weights is None:
        return _bincount(input, None, minlength, int64)
    if weights.spec.shape != input.spec.shape:
        if int(beneath(input).min()) < 0:  # PyTorch raises this error before the one about shapes
            raise _not_countable()
        raise RuntimeError("weights should be 1-d and have the same length as input")
    result = float32 if weights.spec.dtype is float32 else float64
    return _bincount(input, weights.detach().to(float64), minlength, result)
