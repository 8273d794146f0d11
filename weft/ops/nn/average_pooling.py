"""The average, or a norm, of each window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import bool_, uint8
from ...core.public import public
from ...core.tensor import Tensor
from ...families.array_op import on_device
from .max_pooling import window_max
from .pooling import (
    PoolGeometry,
    check_input,
    check_padding_of_empty,
    geometry_of,
    padded,
    per_dim,
    pooled,
    window_sum,
)
from .window_views import like_format, wide


def _average(
    name: str, n: int, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
) -> Tensor:
    check_padding_of_empty(name, input, n, kernel_size, padding, 1)
    check_input(name, input, n, (bool_, uint8))
    geometry = geometry_of(name, input.spec.shape[-n:], kernel_size, stride, padding, 1, ceil_mode)
    shares = divisor(geometry, count_include_pad, divisor_override)
    if n == 3 and any(size < k for size, k in zip(geometry.sizes, geometry.kernel, strict=True)):
        raise RuntimeError(f"input image {geometry.sizes} smaller than kernel size {geometry.kernel}")
    dtype = input.spec.dtype
    (source,) = wide(dtype, input)
    total = window_sum(padded(source, geometry, 0), *geometry.looking, geometry.counts)
    if isinstance(shares, np.ndarray):
        shares = on_device(shares, total.spec.device, total.spec.dtype)
    found = total / shares if dtype.category >= 2 else total.div(shares, rounding_mode="trunc")
    return pooled("AvgPool", n, like_format(found.to(dtype), input))


def divisor(geometry: PoolGeometry, count_include_pad: bool, override: int | None) -> Any:
    """How many elements each window averages over: one number if all agree."""
    if override == 0:
        raise RuntimeError("divisor must be not zero")
    if override is not None:
        return override
    if not any(geometry.border):
        return math.prod(geometry.kernel)
    counted: Any = np.ones((), np.int64)
    for size, k, step, pad, count in zip(
        geometry.sizes, geometry.kernel, geometry.stride, geometry.padding, geometry.counts, strict=True
    ):
        starts = np.arange(count) * step - pad
        ends = np.minimum(starts + k, size + pad)
        if not count_include_pad:
            starts, ends = np.maximum(starts, 0), np.minimum(ends, size)
        counted = counted[..., None] * (ends - starts)
    return int(counted.flat[0]) if (counted == counted.flat[0]).all() else counted


@public("function", "nn.functional.avg_pool1d")
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window along the last dim. Shapes: [N, C, L] or [C, L].

    >>> import weft as torch
    >>> torch.nn.functional.avg_pool1d(torch.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]])
    """
    return _average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@public(name="nn.functional.avg_pool2d")
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window over the last two dims. Shapes: [N, C, H, W] or [C, H, W].

    >>> import weft as torch
    >>> torch.nn.functional.avg_pool2d(torch.ones(1, 4, 4), 2).shape
    torch.Size([1, 2, 2])
    """
    return _average(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@public(name="nn.functional.avg_pool3d", autocast="raise")
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Return the mean of each window over the last three dims. Shapes: [N, C, D, H, W] or [C, D, H, W].

    >>> import weft as torch
    >>> torch.nn.functional.avg_pool3d(torch.ones(1, 4, 4, 4), 2).shape
    torch.Size([1, 2, 2, 2])
    """
    return _average(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _define_lp(n: int, average: Any) -> None:
    name = f"lp_pool{n}d"

    @public(name=f"nn.functional.{name}", words={"n": n})
    def function(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        """Return the `norm_type`-th root of the sum of powers in each window over the last {n} dims."""
        check_input(name, input, n)
        if math.isinf(norm_type):
            sign = 1 if norm_type > 0 else -1
            return sign * window_max(name, n, sign * input.abs(), kernel_size, stride, 0, 1, ceil_mode, False)
        places = math.prod(per_dim(kernel_size, n, name, "kernel_size"))
        means = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (means * places).pow(1.0 / norm_type)


for _n, _average_pool in enumerate((avg_pool1d, avg_pool2d, avg_pool3d), 1):
    _define_lp(_n, _average_pool)
