"""Functions of images: pooling, resizing and padding, computed with the integers, which hold what is picked or added up exactly."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.derivative import nondifferentiable
from ...core.dtype import QUANTIZED as STORED
from ...core.dtype import DType, float32, float64, int32, uint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.map import Map, Types
from ...ops.assembly.padding import pad as pad_integers
from ...ops.creation.from_data import tensor as new_tensor
from ...ops.nn import resizing
from ...ops.nn.adaptive_pooling import adaptive_sizes, window_sums
from ...ops.nn.average_pooling import divisor
from ...ops.nn.pooling import PoolGeometry, check_filled, check_input, padded
from ...ops.nn.window_views import FEW, like_format, window_elements, windows
from .numbers import quantize_per_tensor, quantized_number
from .rules import QUANTIZED
from .tensors import like, per_tensor, plain

rule = QUANTIZED.rule

# The kernel, the stride and the dilation of windows.
Looking = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def offsets(x: Tensor, function: str) -> Tensor:
    """Return the integers without the zero point, as int32. Like PyTorch's, those of qint32 wrap around."""
    return plain(x).to(int32) - per_tensor(x, function).zero_point


# ---- Pooling -------------------------------------------------------------------------------------------------------------


def _max_pooling(dims: int) -> None:
    name = f"max_pool{dims}d"
    function = FUNCTIONS[f"nn.functional.{name}"]

    @rule(name, f"nn.functional.{name}")
    def pooled(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        per_tensor(input, name)
        return like(input, function(plain(input), *args, **kwargs))


def _average_pooling(dims: int) -> None:
    name = f"avg_pool{dims}d"

    @rule(f"nn.functional.{name}", *([name] if dims == 1 else ()))
    def pooled(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        check_input(name, plain(input), dims)
        geometry = PoolGeometry(name, input.shape[-dims:], kernel_size, stride, padding, 1, ceil_mode)
        elements = padded(plain(input), geometry, per_tensor(input, name).zero_point)
        counts = divisor(geometry, count_include_pad, divisor_override)
        return _window_averages(input, elements, geometry.looking, geometry.counts, counts)


def _adaptive_pooling(dims: int) -> None:
    name = f"adaptive_avg_pool{dims}d"

    @rule(f"nn.functional.{name}", *([name] if dims == 1 else ()))
    def pooled(input: Tensor, output_size: Any) -> Tensor:
        wanted = adaptive_sizes(name, plain(input), dims, output_size)
        check_filled(name, input, dims)
        sizes = input.shape[-dims:]
        if all(count and size % count == 0 for size, count in zip(sizes, wanted, strict=True)):
            kernel = tuple([size // count for size, count in zip(sizes, wanted, strict=True)])
            looking = kernel, kernel, (1,) * dims
            return _window_averages(input, plain(input), looking, wanted, math.prod(kernel))
        elements, counts = window_sums(offsets(input, name), dims, wanted)
        return _averages(input, elements, counts)


def _window_averages(x: Tensor, elements: Tensor, looking: Looking, positions: tuple, counts: Any) -> Tensor:
    """The averages of windows of the integers. counts: what each sum is divided by."""
    kernel, by, stored = looking[0], per_tensor(x, "average"), STORED[x.dtype]
    size = math.prod(kernel)
    if size <= FEW and stored is not int32:
        views = window_elements(elements, *looking, positions)
        return like(x, like_format(_average(size, stored)(*views, _scales(counts, x), by.zero_point), x))
    points = np.int64(size * by.zero_point).astype(np.int32)  # wraps around, as the sums do
    sums = windows(elements, *looking).sum(tuple(range(-len(kernel), 0)), dtype=int32)
    return _averages(x, sums - int(points), counts)


@functools.cache
def _average(size: int, dtype: DType) -> Map:
    """The op for the average of so many bytes, a scale that divides their sum, and their zero point."""

    def element(*operands):
        *values, scale, zero_point = operands
        sum_ = functools.reduce(operator.add, values) - zero_point * size
        return quantized_number(sum_, scale, zero_point, dtype)

    return Map("avg_pool", lambda common: Types(float32, dtype), element, derivative=nondifferentiable)


def _scales(counts: Any, x: Tensor) -> float | Tensor:
    """What divides the sums. PyTorch multiplies by the reciprocal of the count, rounded to float32."""
    one = np.float32(1)
    scales = one / (one / np.float32(counts))
    return new_tensor(scales, device=x.device) if scales.ndim else float(scales)


def _averages(x: Tensor, sums: Tensor, counts: Any) -> Tensor:
    """Return the integers of sums of integers without zero points, divided by counts."""
    zero_point = per_tensor(x, "average").zero_point
    made = quantize_per_tensor(sums.to(float32), _scales(counts, x), zero_point, STORED[x.dtype])
    return like(x, like_format(made, x))


for _dims in (1, 2, 3):
    _max_pooling(_dims)
    _average_pooling(_dims)
    _adaptive_pooling(_dims)


# ---- Resizing ------------------------------------------------------------------------------------------------------------


def _picked(x: Tensor, pick: Callable[[Tensor], Tensor]) -> Tensor:
    """What `pick`, a function of bytes or floats, which only picks elements, makes of the integers."""
    integers = plain(x)
    if integers.dtype is int32:
        return like(x, pick(integers.to(float64)).to(int32))
    return like(x, pick(integers.view(uint8)).view(integers.dtype))


@rule("nn.functional.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Elements are picked, or averages of the integers of four neighbours are rounded."""
    by, options = per_tensor(input, "interpolate"), (align_corners, recompute_scale_factor, antialias)
    if mode != "bilinear":
        if not mode.startswith("nearest"):
            raise NotImplementedError(
                f"interpolate of a quantized tensor has the modes nearest, nearest-exact and bilinear, not {mode}: write x.dequantize()"
            )
        function = FUNCTIONS["nn.functional.interpolate"]
        return _picked(input, lambda x: function(x, size, scale_factor, mode, *options))
    sizes, scales = resizing._target(input, 2, size, scale_factor, mode, recompute_scale_factor)
    averages = _of_neighbours(plain(input).to(float32), sizes, scales, bool(align_corners)) - by.zero_point
    made = quantize_per_tensor(averages, 1.0, by.zero_point, STORED[input.dtype])
    return like(input, like_format(made, input))


def _of_neighbours(x: Tensor, sizes: Any, scales: Any, align_corners: bool) -> Tensor:
    """Averages of four neighbours [N, C, height, width], in PyTorch's order of operations, each of them rounded to float32."""
    for dim, own, wanted, scale in zip((3, 2), x.shape[:1:-1], sizes[::-1], scales[::-1], strict=True):
        spacing = np.float32(resizing._spacing(own, wanted, scale, align_corners, np.float32))
        steps = np.arange(wanted, dtype=np.float32)
        half = np.float32(0.5)
        places = (
            steps * spacing if align_corners else np.maximum((steps + half) * spacing - half, np.float32(0))
        )
        first = np.minimum(places.astype(np.int64), own - 1)
        far = places - first.astype(np.float32)
        tables = [new_tensor(each, device=x.device) for each in (first, np.minimum(first + 1, own - 1))]
        shares = [
            new_tensor(each, device=x.device).reshape([-1 if place == dim else 1 for place in range(4)])
            for each in (np.float32(1) - far, far)
        ]
        near, next_ = (x.index_select(dim, table) for table in tables)
        x = shares[0] * near + shares[1] * next_
    return x


@rule("nn.functional.pad")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    by = per_tensor(input, "pad")
    if mode != "constant":
        return like(input, pad_integers(plain(input), pad, mode))
    border = quantize_per_tensor(new_tensor(value or 0.0, dtype=float32), *by, STORED[input.dtype])
    return like(input, pad_integers(plain(input), pad, value=int(border)))
