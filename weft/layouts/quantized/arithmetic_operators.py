"""Defines operators of `torch.ops.quantized` on elements: arithmetic, activations, normalization, pooling."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import QUANTIZED as STORED
from ...core.dtype import DType, float32, float64, int32, int64
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.map import Map
from ...ops.elementwise.comparison import clamp as clamped
from ...ops.elementwise.qparams import QParams
from ...ops.indexing.masking import where
from .calculation import leaky_relu as leaky_relu_in_place
from .numbers import RANGES, op_of, quantized_number
from .operators import operator, relu_forms
from .rules import QUANTIZED
from .tensors import dequantize, like, per_tensor, plain, quantize, quantized
from .views import assign, cat_as


def _made(numbers: Tensor, scale: float, zero_point: int, like_: Tensor, relu: bool = False) -> Tensor:
    """Return the quantized tensor of numbers, with the dtype of another."""
    return quantize(numbers.relu() if relu else numbers, QParams(scale, zero_point), like_.dtype)


# ---- Steps of the scale ----------------------------------------------------------------------------------------------------


def _offset(integer: s.Expr, zero_point: s.Expr, dtype: DType) -> s.Expr:
    """The difference, exact in float32 for bytes; that of int32 wraps around."""
    return s.cast(integer, int32) - s.cast(zero_point, int32) if dtype is int32 else integer - zero_point


def _product(dtype: DType) -> Callable:
    def steps(a, b, zero_point_a, zero_point_b, factor):
        product = _offset(a, zero_point_a, dtype) * _offset(b, zero_point_b, dtype)
        return s.cast(product, float32) * s.cast(factor, float32)

    return steps


def _line(dtype: DType) -> Callable:
    def steps(integer, factor, term, zero_point):
        offset = s.cast(_offset(integer, zero_point, dtype), float32)
        return offset * s.cast(factor, float32) + s.cast(term, float32)

    return steps


def _bent_line(dtype: DType) -> Callable:
    def steps(integer, weight, zero_point, weight_zero_point, positive, negative):
        offset = _offset(integer, zero_point, dtype)
        product = s.cast(offset * _offset(weight, weight_zero_point, dtype), float32)
        above, below = (
            s.cast(offset, float32) * s.cast(positive, float32),
            product * s.cast(negative, float32),
        )
        return s.where(offset > 0, above, below)

    return steps


@functools.cache
def _in_steps(steps: Callable[[DType], Callable], dtype: DType) -> Map:
    """The op for integers of `dtype` whose number of steps of the scale is `steps(dtype)`, a float32 of other operands.

    The number is rounded half to even before the zero point is added. The last operands are the zero point and the bounds of the result.
    """
    count = steps(dtype)

    def element(*operands):
        *given, zero_point, low, high = operands
        found = s.rint(count(*given))
        if dtype is int32:
            found, low, high = s.cast(found, int64), s.cast(low, int64), s.cast(high, int64)
            zero_point = s.cast(zero_point, int64)
        found = found + zero_point
        return s.cast(s.where(found > low, s.where(found < high, found, high), low), int32)

    operands = float64 if dtype is int32 else float32  # which hold all integers of the dtype
    return op_of(element, operands, dtype)


def _rounded(steps: Callable, operands: tuple, by: QParams, x: Tensor, relu: bool = False) -> Tensor:
    """Return a quantized tensor like `x` of a number of steps of the scale; none of them negative with `relu`."""
    stored = STORED[x.dtype]
    low, high = RANGES[stored]
    low = max(low, by.zero_point) if relu else low
    ends = float(by.zero_point), float(low), float(high)
    return quantized(_in_steps(steps, stored)(*operands, *ends), by, x.dtype)


# ---- Sums and products -----------------------------------------------------------------------------------------------------


@relu_forms("add", "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def add(qa: Tensor, qb: Tensor, scale: float, zero_point: int, relu: bool = False) -> Tensor:
    stored = STORED[qa.dtype]
    if stored is int32 or qb.dtype is not qa.dtype:
        return _made(dequantize(qa) + dequantize(qb), scale, zero_point, qa, relu)
    by = [*per_tensor(qa, "quantized.add"), *per_tensor(qb, "quantized.add"), scale, zero_point]
    return quantized(
        _sum(stored, relu)(plain(qa), plain(qb), *map(float, by)), QParams(scale, zero_point), qa.dtype
    )


@functools.cache
def _sum(dtype: DType, relu: bool) -> Map:
    """The op for the integers of the sum of two numbers, which are bytes."""

    def element(a, b, scale_a, zero_point_a, scale_b, zero_point_b, scale, zero_point):
        total = (a - zero_point_a) * scale_a + (b - zero_point_b) * scale_b
        total = s.maximum(total, 0.0) if relu else total
        return quantized_number(total, scale, zero_point, dtype)

    return op_of(element, float32, dtype)


@relu_forms("add.out", "(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out")
def add_out(qa: Tensor, qb: Tensor, out: Tensor, relu: bool = False) -> Tensor:
    assign(add(qa, qb, *per_tensor(out, "quantized.add"), relu=relu), out)
    return out


@relu_forms("mul", "(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def mul(qa: Tensor, qb: Tensor, scale: float, zero_point: int, relu: bool = False) -> Tensor:
    """The product of the differences is exact; PyTorch computes the factor in float32."""
    a, b = (per_tensor(each, "quantized.mul") for each in (qa, qb))
    factor = np.float32(a.scale) * np.float32(b.scale) * (np.float32(1) / np.float32(scale))
    operands = plain(qa), plain(qb), a.zero_point, b.zero_point, float(factor)
    return _rounded(_product, operands, QParams(scale, zero_point), qa, relu)


@relu_forms("mul.out", "(Tensor qa, Tensor qb, Tensor(a!) out) -> Tensor(a!) out")
def mul_out(qa: Tensor, qb: Tensor, out: Tensor, relu: bool = False) -> Tensor:
    assign(mul(qa, qb, *per_tensor(out, "quantized.mul"), relu=relu), out)
    return out


@relu_forms("add_scalar", "(Tensor qa, Scalar b) -> Tensor qc")
@relu_forms("add.Scalar", "(Tensor qa, Scalar b) -> Tensor qc")
@relu_forms("add_scalar.Tensor", "(Tensor qa, Tensor b) -> Tensor qc")
def add_scalar(qa: Tensor, b: Any, relu: bool = False) -> Tensor:
    """The zero point moves; where it would leave the range of the integers, the scale grows."""
    scale, zero_point = per_tensor(qa, "quantized.add_scalar")
    low, high = RANGES[STORED[qa.dtype]]
    steps = round(float(b) / scale)
    moved = zero_point - steps
    if low <= moved <= high:
        by = QParams(scale, moved)
        return quantized(plain(qa).clamp(min=moved) if relu else plain(qa).clone(), by, qa.dtype)
    if moved < low:
        by = QParams((high - moved) / (high - low) * scale, low)
    else:
        by = QParams((moved - low) / (high - low) * scale, high)
    factor = np.float32(scale) * (np.float32(1) / np.float32(by.scale))
    return _rounded(_line, (plain(qa), float(factor), 0.0, moved), by, qa, relu)


@relu_forms("mul_scalar", "(Tensor qa, Scalar b) -> Tensor qc")
@relu_forms("mul.Scalar", "(Tensor qa, Scalar b) -> Tensor qc")
@relu_forms("mul_scalar.Tensor", "(Tensor qa, Tensor b) -> Tensor qc")
def mul_scalar(qa: Tensor, b: Any, relu: bool = False) -> Tensor:
    """The scale is multiplied; a negative factor reverses the order of the integers."""
    scale, zero_point = per_tensor(qa, "quantized.mul_scalar")
    integers, (low, high) = plain(qa), RANGES[STORED[qa.dtype]]
    factor = float(b)
    if factor == 0:
        return quantized(integers.new_zeros(integers.shape), QParams(1.0, 0), qa.dtype)
    if factor < 0:
        integers = (low + high - integers.to(int64)).to(integers.dtype)
        zero_point = high - (zero_point - low)
    integers = integers.clamp(min=zero_point) if relu else integers.clone()
    return quantized(integers, QParams(abs(factor) * scale, zero_point), qa.dtype)


@operator("matmul(Tensor qa, Tensor qb, float scale, int zero_point) -> Tensor qc")
def matmul(qa: Tensor, qb: Tensor, scale: float, zero_point: int) -> Tensor:
    return _made(dequantize(qa) @ dequantize(qb), scale, zero_point, qa)


@relu_forms("cat", "(Tensor[] qx, int dim, float? scale, int? zero_point) -> Tensor")
def cat(qx: Any, dim: int, scale: float | None, zero_point: int | None, relu: bool = False) -> Tensor:
    own = per_tensor(qx[0], "quantized.cat")
    by = QParams(own.scale if scale is None else scale, own.zero_point if zero_point is None else zero_point)
    found = cat_as(qx, dim, by)
    return found.relu() if relu else found


# ---- Activations -----------------------------------------------------------------------------------------------------------


@operator(
    "leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, int output_zero_point) -> Tensor"
)
def leaky_relu(
    qx: Tensor, negative_slope: float, inplace: bool, output_scale: float, output_zero_point: int
) -> Tensor:
    if inplace:
        return leaky_relu_in_place(qx, negative_slope, True)
    x = dequantize(qx)
    return _made(where(x > 0, x, x * negative_slope), output_scale, output_zero_point, qx)


@operator("prelu(Tensor qx, Tensor weight, float output_scale, int output_zero_point) -> Tensor")
def prelu(qx: Tensor, weight: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    """PyTorch computes the factors in float32: one for positive offsets, and one that the weight's integers multiply for the others."""
    by, of_weight = per_tensor(qx, "quantized.prelu"), per_tensor(weight, "quantized.prelu")
    factors = plain(weight)
    if factors.numel() > 1:
        if qx.dim() < 2 or factors.shape != (qx.shape[1],):
            raise RuntimeError(
                f"quantized.prelu: a weight of shape {list(factors.shape)} does not fit an input of shape {list(qx.shape)}: expected one "
                "number, or one for each channel, dim 1"
            )
        factors = factors.view([1, -1, *[1] * (qx.dim() - 2)])
    positive = np.float32(by.scale) * (np.float32(1) / np.float32(output_scale))
    negative = positive * np.float32(of_weight.scale)
    operands = plain(qx), factors, by.zero_point, of_weight.zero_point, float(positive), float(negative)
    return _rounded(_bent_line, operands, QParams(output_scale, output_zero_point), qx)


@QUANTIZED.rule("prelu", "nn.functional.prelu")
def _prelu(input: Tensor, weight: Tensor) -> Tensor:
    return prelu(input, weight, *per_tensor(input, "prelu"))


@operator("sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor")
def sigmoid(qx: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    return _made(dequantize(qx).sigmoid(), output_scale, output_zero_point, qx)


@operator("hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor")
def hardswish(input: Tensor, output_scale: float, output_zero_point: int) -> Tensor:
    stored, by = STORED[input.dtype], QParams(output_scale, output_zero_point)
    if stored is int32:
        x = dequantize(input)
        return _made(x * clamped(x + 3.0, 0.0, 6.0) / 6.0, *by, input)
    given = [*per_tensor(input, "quantized.hardswish"), *by]
    return quantized(_hardswish(stored)(plain(input), *map(float, given)), by, input.dtype)


@functools.cache
def _hardswish(dtype: DType) -> Map:
    """The op for integers that are bytes."""

    def element(integer, scale, zero_point, output_scale, output_zero_point):
        x = (integer - zero_point) * scale
        found = x * s.minimum(s.maximum(x + 3.0, 0.0), 6.0) / 6.0
        return quantized_number(found, output_scale, output_zero_point, dtype)

    return op_of(element, float32, dtype)


@operator(
    "elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor"
)
def elu(
    self: Tensor,
    output_scale: float,
    output_zero_point: int,
    alpha: Any = 1,
    scale: Any = 1,
    input_scale: Any = 1,
) -> Tensor:
    x = dequantize(self)
    negative = (x * float(input_scale)).expm1() * (float(alpha) * float(scale))
    return _made(where(x >= 0, x * float(scale), negative), output_scale, output_zero_point, self)


@operator("celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor")
def celu(self: Tensor, output_scale: float, output_zero_point: int, alpha: Any = 1) -> Tensor:
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, output_scale, output_zero_point, alpha, 1, 1.0 / float(alpha))


@operator("softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor")
def softmax(qx: Tensor, dim: int, output_scale: float, output_zero_point: int) -> Tensor:
    return _made(dequantize(qx).softmax(dim), output_scale, output_zero_point, qx)


@operator("relu6(Tensor qx, bool inplace=False) -> Tensor")
def relu6(qx: Tensor, inplace: bool = False) -> Tensor:
    return FUNCTIONS["nn.functional.relu6"](qx, inplace)


@operator("clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy")
def clamp(qx: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return qx.clamp(min, max)


@operator("threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy")
def threshold(qx: Tensor, threshold: Any, value: Any) -> Tensor:
    return FUNCTIONS["nn.functional.threshold"](qx, threshold, value)


@operator(
    "dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, bool training=False) -> Tensor"
)
def dropout(
    self: Tensor, output_scale: float, output_zero_point: int, p: Any = 0.5, training: bool = False
) -> Tensor:
    return like(self, plain(self).clone())


# ---- Normalization and pooling -----------------------------------------------------------------------------------------------


def _batch_norm(qx, weight, bias, mean, var, eps, output_scale, output_zero_point, relu=False) -> Tensor:
    """Return a factor and a term for each channel, in float32, applied to the offsets of the integers."""
    by = per_tensor(qx, "quantized.batch_norm")
    scale = (1.0 / (var + float(np.float32(eps))).sqrt()) * (1.0 if weight is None else weight)
    factor = scale * (by.scale / output_scale)
    term = ((0.0 if bias is None else bias) - mean * scale) / output_scale
    shape = [1, -1, *[1] * (qx.dim() - 2)]
    vectors = (each.to(float32).view(shape) for each in (factor, term))
    made = QParams(output_scale, output_zero_point)
    return _rounded(_line, (plain(qx), *vectors, by.zero_point), made, qx, relu)


_BATCH_NORM = "(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, int output_zero_point) -> Tensor"
for _dims in ("", "1d", "2d", "3d"):
    relu_forms(f"batch_norm{_dims}", _BATCH_NORM)(_batch_norm)
_OPTIONS = "Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point) -> Tensor"


@operator(f"layer_norm(Tensor input, int[] normalized_shape, {_OPTIONS}")
def layer_norm(input, normalized_shape, weight, bias, eps, output_scale, output_zero_point) -> Tensor:
    found = FUNCTIONS["nn.functional.layer_norm"](dequantize(input), normalized_shape, weight, bias, eps)
    return _made(found, output_scale, output_zero_point, input)


@operator(f"group_norm(Tensor input, int num_groups, {_OPTIONS}")
def group_norm(input, num_groups, weight, bias, eps, output_scale, output_zero_point) -> Tensor:
    found = FUNCTIONS["nn.functional.group_norm"](dequantize(input), num_groups, weight, bias, eps)
    return _made(found, output_scale, output_zero_point, input)


@operator(f"instance_norm(Tensor input, {_OPTIONS}")
def instance_norm(input, weight, bias, eps, output_scale, output_zero_point) -> Tensor:
    found = FUNCTIONS["nn.functional.instance_norm"](dequantize(input), weight=weight, bias=bias, eps=eps)
    return _made(found, output_scale, output_zero_point, input)


_MAX_POOL = (
    "(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor"
)


@operator(f"max_pool1d{_MAX_POOL}")
def max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode) -> Tensor:
    return FUNCTIONS["nn.functional.max_pool1d"](qx, kernel_size, stride, padding, dilation, ceil_mode)


@operator(f"max_pool2d{_MAX_POOL}")
def max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode) -> Tensor:
    return FUNCTIONS["nn.functional.max_pool2d"](qx, kernel_size, stride, padding, dilation, ceil_mode)
