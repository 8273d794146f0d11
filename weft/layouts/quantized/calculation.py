"""Functions that compute with quantized tensors: with their integers where that is exact, else with their numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import QUANTIZED as STORED
from ...core.dtype import float32, int32, quint8
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.creation.from_data import tensor as new_tensor
from ...ops.elementwise.comparison import CLAMP_MIN
from ...ops.elementwise.comparison import clamp as clamped
from ...ops.elementwise.qparams import QParams
from ...ops.indexing.masking import where
from .numbers import RANGES, quantize_per_tensor
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
    def compared(input: Any, other: Any, *tolerances: Any, **options: Any) -> Tensor:
        return function(_numbers(input), _numbers(other), *tolerances, **options)


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
    return _inplace(input, like(input, CLAMP_MIN(plain(input), zero_point)), inplace)


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


@rule("nn.functional.gelu")
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    by = per_tensor(input, "gelu")
    numbers = FUNCTIONS["nn.functional.gelu"](dequantize(input), approximate=approximate)
    return quantize(numbers, QParams(float(np.float32(by.scale)), by.zero_point), input.dtype)


@rule(*(f"nn.functional.{name}" for name in "dropout alpha_dropout dropout1d dropout2d dropout3d".split()))
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return the tensor itself, as in evaluation."""
    if training:
        raise QUANTIZED.missing("nn.functional.dropout")
    return input


# ---- Reductions ----------------------------------------------------------------------------------------------------------


@rule("mean")
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return requantized(input, lambda x: x.mean(dim, keepdim), "mean")


@rule("std")
def std(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return requantized(input, lambda x: x.std(*args, **kwargs), "std")
