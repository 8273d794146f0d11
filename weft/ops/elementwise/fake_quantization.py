"""`fake_quantize_*`: round to the numbers that a quantized tensor can hold, with the gradient of the identity."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ...core.derivative import nondifferentiable
from ...core.dtype import DType, bfloat16, bool_, float16, float32, float64
from ...core.public import public
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.custom_vjp import custom_vjp
from ...families.map import Map, Types
from ..indexing.masking import where
from .comparison import clamp
from .pointwise import round
from .qparams import QParams, choose_qparams

_NARROW = (float16, bfloat16)
# What PyTorch chooses for a range whose ends are NaN.
_OF_NAN = QParams(math.nan, -(2**31))


def _steps(input: Tensor, scale: Any, zero_point: Any) -> Tensor:
    """The quantized integer of each element. As in PyTorch, multiply by the reciprocal of the scale, in float32 or float64."""
    steps = (input.to(float32) if input.dtype in _NARROW else input) * (1.0 / scale)
    return round(steps) + zero_point


def _integer(dtype: DType, has_floats: bool, input: s.Expr, scale: s.Expr, zero_point: s.Expr) -> s.Expr:
    """The quantized integer of an element of this dtype, as `_steps` has it.

    has_floats: the zero point need not be an integer, so add it before rounding.
    """
    inverse = 1.0 / s.cast(scale, float32)
    steps = input * (s.cast(inverse, float64) if dtype is float64 else inverse)
    return s.rint(steps + zero_point) if has_floats else s.rint(steps) + zero_point


def _op(dtype: DType, result: DType, element: Callable) -> Map:
    """The op for inputs of this dtype; the other operands are the scale, the zero point and the bounds."""
    operands = float64 if dtype is float64 else float32
    return Map("fake_quantize", lambda common: Types(operands, result), element, derivative=nondifferentiable)


@functools.cache
def _fake(dtype: DType, has_floats: bool) -> Map:
    """The op that rounds to the numbers that a quantized tensor can hold."""

    def element(input, scale, zero_point, low, high):
        steps = _integer(dtype, has_floats, input, scale, zero_point)
        steps = s.where(steps < high, s.where(steps > low, steps, low), s.where(s.isnan(steps), low, high))
        offset = s.cast(steps, float32) - s.cast(zero_point, float32)
        return offset * s.cast(scale, float32)

    return _op(dtype, dtype, element)


@functools.cache
def _is_inside(dtype: DType, has_floats: bool) -> Map:
    """The op that says which elements the bounds do not change."""

    def element(input, scale, zero_point, low, high):
        steps = _integer(dtype, has_floats, input, scale, zero_point)
        return (steps >= low) & (steps <= high)

    return _op(dtype, bool_, element)


def _straight_through(
    ct: Tensor, out: Any, input: Tensor, scale: Any, zero_point: Any, low: int, high: int, has_floats: bool
) -> Tensor:
    inside = _is_inside(input.dtype, has_floats)(input, scale, zero_point, float(low), float(high))
    return where(inside, ct, 0.0)


def _clamped(steps: Tensor, low: int, high: int) -> Tensor:
    """The integers within the bounds. NaN becomes the least one."""
    return where(steps == steps, clamp(steps, low, high), low)


@custom_vjp(_straight_through, None, None, None, None, None)
def fake_quantized(
    input: Tensor, scale: Any, zero_point: Any, low: int, high: int, has_floats: bool
) -> Tensor:
    return _fake(input.dtype, has_floats)(input, scale, zero_point, float(low), float(high))


def _check_range(quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError(
            f"`quant_min` should be less than or equal to `quant_max`, got {quant_min} and {quant_max}."
        )


@public("function")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """clamp(round(input / scale) + zero_point, quant_min, quant_max), converted back.

    The gradient is that of the output where the clamp changes nothing, else 0. `scale` and `zero_point` are numbers or
    tensors of one element.

    >>> import weft as torch
    >>> torch.fake_quantize_per_tensor_affine(torch.tensor([0.04, 0.26, 9.0]), 0.1, 0, 0, 15)
    tensor([0.0000, 0.3000, 1.5000])
    """
    _check_range(quant_min, quant_max)
    if isinstance(scale, Tensor):
        scale, zero_point = scale.detach().reshape(()), zero_point.detach().reshape(()).to(float32)
    else:
        _check_zero_point(zero_point, quant_min, quant_max)
        scale, zero_point = float(scale), float(zero_point)
    return fake_quantized(input, scale, zero_point, quant_min, quant_max, False)


def _check_zero_point(zero_point: int, low: int, high: int) -> None:
    if not low <= zero_point <= high:
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`: got {zero_point}, {low} and {high}."
        )


@public("function")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Quantize as `fake_quantize_per_tensor_affine`, by a scale and a zero point for each index of dim `axis`."""
    _check_range(quant_min, quant_max)
    _check_channels(input, scale, zero_point, axis)
    has_floats = zero_point.is_floating_point()
    if not has_floats and ((zero_point < quant_min) | (zero_point > quant_max)).any():
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    shape = _on_axis(input, axis)
    points = zero_point.detach().view(shape).to(float32)
    return fake_quantized(input, scale.detach().view(shape), points, quant_min, quant_max, has_floats)


def _check_channels(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> None:
    for name, each in (("scale", scale), ("zero-point", zero_point)):
        if each.dim() != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
        if len(each) != input.size(axis):
            raise RuntimeError(
                f"dimensions of {name} and input are not consistent: {len(each)} for dim {axis} of {list(input.shape)}"
            )


def _on_axis(input: Tensor, axis: int) -> list[int]:
    """The shape of a vector that is broadcast along dim `axis` of the input."""
    return [-1 if dim == axis % input.dim() else 1 for dim in range(input.dim())]


# ---- Learned scales and zero points ----------------------------------------------------------------------------------------


def _learned_parts(
    input: Tensor, scale: Tensor, points: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """The quantized integer of each element before and after the clamp."""
    steps = _steps(input, scale, points)
    return steps, _clamped(steps, low, high)


def _learned_input(ct: Tensor, out: Any, *given: Any) -> Tensor:
    steps, clamped = _learned_parts(*given[:5])
    return where(steps == clamped, ct, 0.0)


def _learned_scale(
    ct: Tensor, out: Any, input: Tensor, scale: Tensor, points: Tensor, low: int, high: int, factor: float
) -> Tensor:
    steps, clamped = _learned_parts(input, scale, points, low, high)
    inside = ((clamped - points) * scale - input) * (1.0 / scale)
    return ct * where(steps == clamped, inside, clamped - points) * factor


def _learned_zero_point(
    ct: Tensor, out: Any, input: Tensor, scale: Tensor, points: Tensor, low: int, high: int, factor: float
) -> Tensor:
    steps, clamped = _learned_parts(input, scale, points, low, high)
    return where(steps == clamped, 0.0, -ct * scale * factor)


@custom_vjp(_learned_input, _learned_scale, _learned_zero_point, None, None, None)
def _learned(input: Tensor, scale: Tensor, points: Tensor, low: int, high: int, factor: float) -> Tensor:
    """Fake quantization with a scale and a zero point, an integer, for each element, which have gradients, too.

    The gradients of scale and zero point are multiplied by `factor`.
    Source: Esser et al. 2020, "Learned step size quantization", and Jain et al. 2020, "Trained quantization thresholds".
    """
    return (_learned_parts(input, scale, points, low, high)[1] - points) * scale


@custom_vjp(lambda ct, out, zero_point, low, high: ct, None, None)
def _nearest_points(zero_point: Tensor, low: int, high: int) -> Tensor:
    """Return the zero points as integers of the range, with the gradient of the identity."""
    return clamp(round(zero_point), low, high)


@public("function")
def _fake_quantize_learnable_per_tensor_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """`fake_quantize_per_tensor_affine`, and gradients of the scale and of the zero point, which are tensors of one element."""
    _check_range(quant_min, quant_max)
    points = _nearest_points(zero_point, quant_min, quant_max)
    given = (each.reshape(()).expand_as(input) for each in (scale, points))
    return _learned(input, *given, quant_min, quant_max, grad_factor)


@public("function")
def _fake_quantize_learnable_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:  # fmt: skip
    """`fake_quantize_per_channel_affine`, and gradients of the scales and of the zero points."""
    _check_range(quant_min, quant_max)
    _check_channels(input, scale, zero_point, axis)
    shape = _on_axis(input, axis)
    points = _nearest_points(zero_point, quant_min, quant_max)
    given = (each.view(shape).expand_as(input) for each in (scale, points))
    return _learned(input, *given, quant_min, quant_max, grad_factor)


# ---- Fake quantization that observes -----------------------------------------------------------------------------------------


@public("function")
def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Observe the range of `input`, choose a scale and a zero point for it, and fake-quantize with them.

    The range is a moving average, kept in `running_min` and `running_max`. The two switches are tensors of one element.
    """
    if input.numel() == 0:
        return input.clone()
    if observer_on.item() == 1:
        _observe(input.detach(), running_min, running_max, averaging_const, ch_axis, per_row_fake_quant)
    if fake_quant_on.item() != 1:
        return input
    if observer_on.item() == 1:
        _choose(running_min, running_max, scale, zero_point, quant_min, quant_max, symmetric_quant)
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _observe(input: Tensor, low: Tensor, high: Tensor, constant: float, axis: int, per_row: bool) -> None:
    if per_row:
        rows = input.movedim(axis, 0).reshape(input.size(axis), -1)
        least, most = rows.amin(1), rows.amax(1)
    else:
        least, most = input.amin(), input.amax()
    if low.numel() != least.numel():
        low.resize_(least.shape).fill_(float("inf"))
        high.resize_(most.shape).fill_(float("-inf"))
    for kept, new in ((low, least.view(low.shape)), (high, most.view(high.shape))):
        kept.copy_(where(kept.isinf(), new, kept + constant * (new - kept)))


def _choose(
    low: Tensor,
    high: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    quant_min: int,
    quant_max: int,
    symmetric: bool,
) -> None:
    """Return the scale and the zero point for each range."""
    ends = zip(low.flatten().tolist(), high.flatten().tolist(), strict=True)
    found = [
        choose_qparams(*each, quant_min, quant_max, symmetric, in_float32=True)
        if each[0] <= each[1]
        else _OF_NAN
        for each in ends
    ]
    for kept, values in zip((scale, zero_point), zip(*found)):
        if kept.numel() != low.numel():
            kept.resize_(low.shape)
        kept.copy_(kept.new_tensor(values).view(kept.shape))
