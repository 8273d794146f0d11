"""Functions that compute with quantized tensors: with their integers where that is exact, else with their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import QUANTIZED as STORED
from ...core.dtype import float32, float64, int32, quint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.assembly.padding import pad as padded
from ...ops.creation.from_data import tensor as new_tensor
from ...ops.elementwise.comparison import clamp as clamped
from ...ops.elementwise.qparams import QParams
from ...ops.indexing.masking import where
from ...ops.nn import resizing
from .numbers import RANGES, quantize_by_scales, quantize_per_tensor
from .rules import QUANTIZED
from .tensors import dequantize, is_quantized, like, per_tensor, plain, quantize, quantizer_of

rule = QUANTIZED.rule


def _numbers(x: Any) -> Any:
    return dequantize(x) if is_quantized(x) else x


def requantized(x: Tensor, compute: Callable[[Tensor], Tensor], function: str) -> Tensor:
    """What `compute` makes of the numbers, with the scale and the zero point of `x`."""
    return quantize(compute(dequantize(x)), per_tensor(x, function), x.dtype)


# ---- Comparison ----------------------------------------------------------------------------------------------------------


def _comparing(name: str) -> None:
    function = FUNCTIONS[name]

    @rule(name)
    def compared(input: Any, other: Any) -> Tensor:
        return function(_numbers(input), _numbers(other))


for _name in "eq ne lt le gt ge isclose".split():
    _comparing(_name)


@rule("equal")
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether dtypes, quantizers and integers are equal."""
    if not (is_quantized(input) and is_quantized(other)) or input.dtype is not other.dtype:
        return False
    return quantizer_of(input) == quantizer_of(other) and bool(plain(input).equal(plain(other)))


# ---- Bounds: the order of integers is that of their numbers ----------------------------------------------------------------


def bounded(x: Tensor, low: float | None, high: float | None, function: str) -> Tensor:
    by, stored = per_tensor(x, function), STORED[x.dtype]
    ends = [
        None if end is None else int(quantize_per_tensor(new_tensor(end, dtype=float32), *by, stored))
        for end in (low, high)
    ]
    return like(x, clamped(plain(x), *ends))


@rule("clamp")
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return bounded(input, min, max, "clamp")


def _inplace(x: Tensor, result: Tensor, inplace: bool) -> Tensor:
    return x.copy_(result) if inplace else result


@rule("relu", "nn.functional.relu")
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    zero_point = per_tensor(input, "relu").zero_point
    return _inplace(input, like(input, clamped(plain(input), min=zero_point)), inplace)


@rule("nn.functional.relu6")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return _inplace(input, bounded(input, 0.0, 6.0, "relu6"), inplace)


@rule("nn.functional.hardtanh")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    return _inplace(input, bounded(input, min_val, max_val, "hardtanh"), inplace)


# ---- Elementwise functions -------------------------------------------------------------------------------------------------


@rule("threshold", "nn.functional.threshold")
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    result = requantized(input, lambda x: where(x > threshold, x, float(value)), "threshold")
    return _inplace(input, result, inplace)


@rule("nn.functional.leaky_relu")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    result = requantized(input, lambda x: where(x > 0, x, x * negative_slope), "leaky_relu")
    return _inplace(input, result, inplace)


def _range_of_result(x: Tensor, symmetric: bool) -> QParams:
    """The quantizer of results between 0 and 1, or between -1 and 1: all integers of the dtype are used."""
    stored = STORED[x.dtype]
    bits = 8 * stored.itemsize
    middle = 0 if x.dtype is not quint8 else 2 ** (bits - 1)
    if symmetric:
        return QParams(2.0 ** (1 - bits), middle)
    return QParams(2.0**-bits, RANGES[stored][0] if stored is not int32 else 0)


@rule("sigmoid", "nn.functional.sigmoid")
def sigmoid(input: Tensor) -> Tensor:
    return quantize(dequantize(input).sigmoid(), _range_of_result(input, False), input.dtype)


@rule("nn.functional.hardsigmoid")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    by = per_tensor(input, "hardsigmoid")
    if inplace:
        return input.copy_(quantize(_hardsigmoid(dequantize(input)), by, input.dtype))
    return quantize(_hardsigmoid(dequantize(input)), _range_of_result(input, False), input.dtype)


def _hardsigmoid(x: Tensor) -> Tensor:
    return clamped(x + 3.0, 0.0, 6.0) / 6.0


@rule("tanh", "nn.functional.tanh")
def tanh(input: Tensor) -> Tensor:
    return quantize(dequantize(input).tanh(), _range_of_result(input, True), input.dtype)


# ---- Reductions ----------------------------------------------------------------------------------------------------------


@rule("mean")
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return requantized(input, lambda x: x.mean(dim, keepdim), "mean")


@rule("std")
def std(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return requantized(input, lambda x: x.std(*args, **kwargs), "std")


# ---- Images --------------------------------------------------------------------------------------------------------------


def _on_floats(x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
    """What a function that picks elements makes of the integers, computed in floats, which hold them exactly."""
    integers = plain(x)
    return like(x, compute(integers.to(float64 if integers.dtype is int32 else float32)).to(integers.dtype))


def _max_pooling(dims: int) -> None:
    name = f"max_pool{dims}d"
    function = FUNCTIONS[f"nn.functional.{name}"]

    @rule(name, f"nn.functional.{name}")
    def pooled(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        per_tensor(input, name)
        return _on_floats(input, lambda x: function(x, *args, **kwargs))


def _average_pooling(dims: int) -> None:
    name = f"nn.functional.avg_pool{dims}d"
    function = FUNCTIONS[name]

    @rule(name)
    def pooled(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        windows = (kernel_size, stride, padding, ceil_mode)
        offsets = _offsets(input, name)
        ones = offsets.new_ones(offsets.shape)
        counts = function(ones, *windows, True, 1)
        shares = function(ones, *windows, count_include_pad, divisor_override)
        return _averages(input, function(offsets, *windows, True, 1), (counts / shares).round())


def _adaptive_pooling(dims: int) -> None:
    name = f"nn.functional.adaptive_avg_pool{dims}d"
    function = FUNCTIONS[name]

    @rule(name)
    def pooled(input: Tensor, output_size: Any) -> Tensor:
        offsets = _offsets(input, name)
        averages = function(offsets, output_size)
        counts = offsets.new_ones(())
        for own, size in zip(input.shape[-dims:], averages.shape[-dims:], strict=True):
            counts = counts.unsqueeze(-1) * offsets.new_tensor(
                [-(-(k + 1) * own // size) - k * own // size for k in range(size)]
            )
        return _averages(input, (averages * counts).round(), counts)


def _offsets(x: Tensor, function: str) -> Tensor:
    """The integers without the zero point, as float64."""
    return (plain(x).to(int32) - per_tensor(x, function).zero_point).to(float64)


def _averages(x: Tensor, sums: Tensor, counts: Tensor) -> Tensor:
    """The integers of averages. PyTorch multiplies by the reciprocal of the count, rounded to float32."""
    scales = 1.0 / (1.0 / counts.to(float32))
    return like(
        x, quantize_by_scales(sums.to(float32), scales, per_tensor(x, "average").zero_point, STORED[x.dtype])
    )


for _dims in (1, 2, 3):
    _max_pooling(_dims)
for _dims in (2, 3):
    _average_pooling(_dims)
    _adaptive_pooling(_dims)


@rule("avg_pool1d")
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    def last(value: Any, other: int) -> Any:
        return (
            None if value is None else (other, *value) if isinstance(value, (tuple, list)) else (other, value)
        )

    windows = last(kernel_size, 1), last(kernel_size if stride is None else stride, 1), last(padding, 0)
    pooled = FUNCTIONS["nn.functional.avg_pool2d"](
        input.unsqueeze(-2), *windows, ceil_mode, count_include_pad
    )
    return pooled.squeeze(-2)


@rule("adaptive_avg_pool1d")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    size = output_size[0] if isinstance(output_size, (tuple, list)) else output_size
    return FUNCTIONS["nn.functional.adaptive_avg_pool2d"](input.unsqueeze(-2), (1, size)).squeeze(-2)


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
        return _on_floats(input, lambda x: function(x, size, scale_factor, mode, *options))
    sizes, scales = resizing._target(input, 2, size, scale_factor, mode, recompute_scale_factor)
    averages = _of_neighbours(plain(input).to(float32), sizes, scales, bool(align_corners)) - by.zero_point
    return like(input, quantize_per_tensor(averages, 1.0, by.zero_point, STORED[input.dtype]))


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
        return _on_floats(input, lambda x: padded(x, pad, mode))
    border = quantize_per_tensor(new_tensor(value or 0.0, dtype=float32), *by, STORED[input.dtype])
    return like(input, padded(plain(input), pad, value=int(border)))
