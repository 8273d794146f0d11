"""Pooling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._builder import Builder
from .base import per_dim, translates


@translates("max_pool1d", "max_pool2d", "max_pool3d", "boolean_dispatch")
def max_pool(
    b: Builder, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> str:  # fmt: skip
    count = _pooled_dims(b)
    kernel = per_dim(kernel_size, count)
    return b.op("MaxPool", b.tensor(input), kernel_shape=kernel, strides=per_dim(stride, count) if stride else kernel,
                pads=per_dim(padding, count) * 2, dilations=per_dim(dilation, count), ceil_mode=int(ceil_mode))  # fmt: skip


def _pooled_dims(b: Builder) -> int:
    name = b.called()
    return int(name[-2]) if name.endswith("d") else b.result().dim() - 2


@translates("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    b: Builder, input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: Any = None,
) -> str:  # fmt: skip
    if divisor_override is not None:
        raise NotImplementedError("average pooling with divisor_override")
    count = b.result().dim() - 2
    kernel = per_dim(kernel_size, count)
    return b.op("AveragePool", b.tensor(input), kernel_shape=kernel, strides=per_dim(stride, count) if stride else kernel,
                pads=per_dim(padding, count) * 2, ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad))  # fmt: skip


def _adaptive(kind: str, whole: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, output_size: Any, return_indices: bool = False) -> str:
        known, result = b.meta(input), b.result()
        count = int(b.called()[-2])  # adaptive_avg_pool2d
        sizes, wanted = known.shape[-count:], result.shape[-count:]
        if all(each == 1 for each in wanted):
            return b.op(whole, b.tensor(input), b.axes(*range(-count, 0)), keepdims=1)
        if any(known.dim() - count + dim in (input.meta.get("dynamic") or ()) for dim in range(count)):
            raise NotImplementedError("adaptive pooling of a dynamic dimension")
        if not any(size % want for size, want in zip(sizes, wanted)) and known.dim() == count + 2:
            kernel = [size // want for size, want in zip(sizes, wanted)]
            return b.op(kind, b.tensor(input), kernel_shape=kernel, strides=kernel)
        value = b.tensor(input)
        for dim, (size, want) in enumerate(zip(sizes, wanted), known.dim() - count):
            value = _windows(b, value, whole, dim, size, want)
        return value

    return translation


def _windows(b: Builder, value: str, whole: str, dim: int, size: int, want: int) -> str:
    """One dimension, reduced to `want` windows whose sizes differ."""
    parts = []
    for place in range(want):
        start, end = place * size // want, -((-(place + 1) * size) // want)
        part = b.op("Slice", value, b.axes(start), b.axes(end), b.axes(dim))
        parts.append(b.op(whole, part, b.axes(dim), keepdims=1))
    return parts[0] if want == 1 else b.op("Concat", *parts, axis=dim)


translates("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d")(
    _adaptive("AveragePool", "ReduceMean")
)


translates("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")(
    _adaptive("MaxPool", "ReduceMax")
)


@translates("lp_pool1d", "lp_pool2d", "lp_pool3d")
def lp_pool(
    b: Builder, input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
) -> str:
    if norm_type != int(norm_type):
        raise NotImplementedError(f"lp_pool with norm_type={norm_type}")
    count = b.result().dim() - 2
    kernel = per_dim(kernel_size, count)
    return b.op("LpPool", b.tensor(input), p=int(norm_type), kernel_shape=kernel, ceil_mode=int(ceil_mode),
                strides=per_dim(stride, count) if stride else kernel)  # fmt: skip
