"""`fake_quantize_*`: round to the numbers that a quantized tensor can hold, with the gradient of the identity."""

from __future__ import annotations

from typing import Any

from ...core.public import public
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ..indexing.masking import where
from .comparison import clamp
from .pointwise import round
from .qparams import choose_qparams


def _steps(input: Tensor, scale: Any, zero_point: Any) -> Tensor:
    """The quantized integer of each element. As in PyTorch, multiply by the reciprocal of the scale, in float32."""
    inverse = 1.0 / scale
    return round(input * inverse) + zero_point


def _straight_through(
    ct: Tensor, out: Any, input: Tensor, scale: Any, zero_point: Any, low: int, high: int
) -> Tensor:
    steps = _steps(input, scale, zero_point)
    return where((steps >= low) & (steps <= high), ct, 0.0)


@custom_vjp(_straight_through, None, None, None, None)
def fake_quantized(input: Tensor, scale: Any, zero_point: Any, low: int, high: int) -> Tensor:
    return (clamp(_steps(input, scale, zero_point), low, high) - zero_point) * scale


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
        scale, zero_point = scale.detach(), zero_point.detach().to(input.dtype)
    else:
        _check_zero_point(zero_point, quant_min, quant_max)
        scale = input.new_tensor(scale)
    return fake_quantized(input, scale, zero_point, quant_min, quant_max)


def _check_zero_point(zero_point: int, low: int, high: int) -> None:
    if not low <= zero_point <= high:
        raise RuntimeError(
            f"`zero_point` must be between `quant_min` and `quant_max`: got {zero_point}, {low} and {high}."
        )


@public("function")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for each index of dim `axis`."""
    _check_range(quant_min, quant_max)
    for name, each in (("scale", scale), ("zero-point", zero_point)):
        if each.dim() != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
        if len(each) != input.size(axis):
            raise RuntimeError(
                f"dimensions of {name} and input are not consistent: {len(each)} for dim {axis} of {list(input.shape)}"
            )
    if ((zero_point < quant_min) | (zero_point > quant_max)).any():
        raise RuntimeError("`zero_point` must be between `quant_min` and `quant_max`.")
    shape = [-1 if dim == axis % input.dim() else 1 for dim in range(input.dim())]
    points = zero_point.detach().view(shape).to(input.dtype)
    return fake_quantized(input, scale.detach().view(shape), points, quant_min, quant_max)


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
    dims = [dim for dim in range(input.dim()) if dim != axis] if per_row else list(range(input.dim()))
    least, most = input.amin(dims), input.amax(dims)
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
    """The scale and the zero point for each range."""
    ends = zip(low.flatten().tolist(), high.flatten().tolist(), strict=True)
    found = [choose_qparams(*each, quant_min, quant_max, symmetric) for each in ends]
    for kept, values in zip((scale, zero_point), zip(*found)):
        if kept.numel() != low.numel():
            kept.resize_(low.shape)
        kept.copy_(kept.new_tensor(values).view(kept.shape))
