"""Losses of numbers: how far predictions are from targets."""

from __future__ import annotations

import math
from typing import Any

from ...core.iteration import broadcast_shapes
from ...core.op import needs_recording, public
from ...core.tensor import Tensor
from ...families.map import Map, keep
from ...families.step import step
from ..creation import full_like
from .arguments import (
    REDUCTIONS,
    check_floats,
    check_reduction,
    reduced,
    reduction_of,
    warn_unless_same_size,
    weighted,
)


@public(name="nn.functional.mse_loss")
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared difference; "mean" with a `weight` divides by the sum of weights.

    >>> import weft as torch
    >>> torch.nn.functional.mse_loss(torch.zeros(2), torch.tensor([1.0, 3.0]))
    tensor(5.)
    """
    check_floats("mse", input, target)
    warn_unless_same_size(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if weight is None:
        check_reduction(reduction)
        return _mse(input, target, reduction)
    difference = input - target
    return weighted(difference * difference, input, weight, reduction)


_SQUARED_DIFFERENCE = Map("mse_loss", keep, lambda a, b: (a - b) * (a - b))
_MSE_COTANGENT = Map("mse_loss_backward", keep, lambda ct, a, b, factor: ct * factor * (a - b))


def _mse_rule(ct, out, input, target, reduction, *, specs, wanted):
    factor = 2.0
    if reduction == "mean":
        factor /= max(math.prod(broadcast_shapes("mse_loss", specs[0].shape, specs[1].shape)), 1)
    if needs_recording((ct, input, target)):
        found = ct * factor * (input - target)
    else:
        found = _MSE_COTANGENT(ct, input, target, factor)
    return found, -found if wanted[1] else None


@step(joint=_mse_rule)
def _mse(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    return reduced(_SQUARED_DIFFERENCE(input, target), reduction)


_mse.node_name = "MseLossBackward0"


@public(name="nn.functional.l1_loss")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute difference; "mean" with a `weight` divides by the sum of weights."""
    warn_unless_same_size(input, target)
    return weighted((input - target).abs(), input, weight, reduction_of(reduction, size_average, reduce))


@public(name="nn.functional.smooth_l1_loss")
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Squared and divided by 2 beta where the absolute difference is below `beta`, else that minus beta / 2."""
    warn_unless_same_size(input, target)
    reduction = reduction_of(reduction, size_average, reduce)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    check_floats("smooth_l1", input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    distance = (input - target).abs()
    near, far = distance * distance * (0.5 / beta), distance - 0.5 * beta
    return reduced(near.where(distance < beta, far), reduction)


@public(name="nn.functional.huber_loss")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference where it is at most `delta`, else delta times (the absolute difference - delta / 2).

    "mean" divides by the number of elements, whatever their weights.
    """
    check_floats("huber", input, target)
    warn_unless_same_size(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    distance = (input - target).abs()
    near, far = distance * distance * 0.5, (distance - 0.5 * delta) * delta
    loss = near.where(distance <= delta, far)
    if weight is None:
        return reduced(loss, reduction)
    if weight.spec.shape != input.spec.shape:
        raise ValueError("Weights and input must have the same size.")
    return reduced(loss * weight, reduction)


@public(name="nn.functional.poisson_nll_loss")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-08,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood of counts; `input` is the rate or its logarithm. full: with Stirling's approximation."""
    reduction = reduction_of(reduction, size_average, reduce)
    check_reduction(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@public(name="nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log likelihood under normal distributions of mean `input` and variance `var` (at least `eps`).

    full: with the constant term. Raises: ValueError if var is negative or does not fit the input.
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = full_like(input, var)
    elif var.spec.device.backend.has_memory and (var < 0).any():
        raise ValueError("var has negative entry/entries")
    own, given = input.spec.shape, var.spec.shape
    if given != own:
        if own[:-1] == given:
            var = var.unsqueeze(-1)
        elif not (
            len(own) == len(given)
            and sum(a != b for a, b in zip(own, given, strict=True)) == 1
            and 1 in given
        ):
            raise ValueError(f"var is of incorrect size: {list(given)} for an input of size {list(own)}")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    var = var.clamp(min=eps) if not var.requires_grad else _clamped_value(var, eps)
    loss = (var.log() + (input - target) ** 2 / var) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def _clamped_value(var: Tensor, eps: float) -> Tensor:
    """At least eps, but with derivatives as if nothing had been clamped."""
    return var + (var.detach().clamp(min=eps) - var.detach())
