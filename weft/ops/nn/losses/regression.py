"""Losses of numbers: how far predictions are from targets."""

from __future__ import annotations

import math
from typing import Any

from ....core.arguments import wrong_type
from ....core.dtype import get_default_dtype
from ....core.outputs import check_dtype
from ....core.public import public
from ....core.tensor import Tensor
from ....engine import scalar as s
from ....families.map import Map, same_dtype
from ...creation.creation import full_like
from .arguments import (
    REDUCTIONS,
    check_floats,
    check_reduction,
    check_result,
    expanded,
    reduced,
    reduction_of,
    warn_unless_same_size,
    weighted,
)
from .elementwise import elementwise


def _smooth_l1_element(a, b, beta):
    distance = s.absolute(a - b)
    return s.where(distance < beta, distance * distance * 0.5 / beta, distance - 0.5 * beta)


def _signs(difference):
    """1 or -1, and NaN for NaN, whose `sign` is 0."""
    return difference.sign().where(difference == difference, difference)


def _smooth_l1_rule(ct, out, a, b, beta):
    difference = a - b
    return ct * (difference / beta).where(abs(difference) < beta, _signs(difference))


def _huber_element(a, b, delta):
    distance = s.absolute(a - b)
    return s.where(delta < distance, delta * (distance - 0.5 * delta), 0.5 * distance * distance)


def _huber_rule(ct, out, a, b, delta):
    difference = a - b
    return ct * difference.where(abs(difference) <= delta, _signs(difference) * delta)


# fmt: off
_MSE       = Map("mse_loss",       same_dtype, lambda a, b: (a - b) * (a - b),
                 derivative=(lambda ct, out, a, b: ct * 2 * (a - b),
                             lambda ct, out, a, b: ct * 2 * (b - a)))
_SMOOTH_L1 = Map("smooth_l1_loss", same_dtype, _smooth_l1_element,
                 derivative=(_smooth_l1_rule, lambda ct, out, a, b, beta: _smooth_l1_rule(ct, out, b, a, beta)))
_HUBER     = Map("huber_loss",     same_dtype, _huber_element,
                 derivative=(_huber_rule, lambda ct, out, a, b, delta: _huber_rule(ct, out, b, a, delta)))
# fmt: on
_mse, _smooth_l1, _huber = elementwise(_MSE), elementwise(_SMOOTH_L1, float), elementwise(_HUBER, float)


@public(name="nn.functional.mse_loss", autocast="raise")
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
    a, b = expanded(input, target)
    if weight is None:
        return _mse(a, b, reduction)
    difference = a - b
    return weighted(difference * difference, input, weight, reduction)


@public(name="nn.functional.l1_loss", autocast="raise")
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
    a, b = expanded(input, target)
    return weighted((a - b).abs(), input, weight, reduction_of(reduction, size_average, reduce))


@public(name="nn.functional.smooth_l1_loss", autocast="raise")
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
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return _smooth_l1(*expanded(input, target), reduction, float(beta))


@public(name="nn.functional.huber_loss", autocast="raise")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference where it is at most `delta`, else delta times (the absolute difference - delta / 2).

    "mean" divides by the number of elements, not by the sum of the weights.
    """
    check_result("huber_loss", input, target)
    check_floats("huber", input, target)
    warn_unless_same_size(input, target)
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    own = input.spec.dtype
    if weight is None and target.spec.dtype is own:
        return _huber(input, target, reduction, float(delta))
    loss = _huber(*expanded(input, target), "none", float(delta)).to(own)
    if weight is None:
        return reduced(loss, reduction)
    if weight.spec.shape != input.spec.shape:
        raise ValueError("Weights and input must have the same size.")
    return reduced(loss * weight, reduction)


@public(name="nn.functional.poisson_nll_loss", autocast="raise")
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
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """Minus the log likelihood under normal distributions of mean `input` and variance `var` (at least `eps`).

    full: with the constant term. Raises: ValueError if var is negative or does not fit the input.
    """
    if not isinstance(var, (int, float, Tensor)):
        raise wrong_type(var, "gaussian_nll_loss", "var", "Tensor or float")
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = full_like(input, var)
    elif var.spec.device.backend.has_memory and (var < 0).any():
        raise ValueError("var has negative entry/entries")
    spec, given = input.spec.shape, var.spec.shape
    if given != spec:
        if spec[:-1] == given:
            var = var.unsqueeze(-1)
        elif not (
            len(spec) == len(given)
            and sum(a != b for a, b in zip(spec, given, strict=True)) == 1
            and 1 in given
        ):
            raise ValueError(f"var is of incorrect size: {list(given)} for an input of size {list(spec)}")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    if var.spec.dtype.is_integral:
        check_dtype(var.spec, get_default_dtype(), "gaussian_nll_loss")
    var = var.clamp(min=eps) if not var.requires_grad else _clamped_value(var, eps)
    loss = (var.log() + (input - target) ** 2 / var) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def _clamped_value(var: Tensor, eps: float) -> Tensor:
    """At least eps, but with derivatives as if nothing had been clamped."""
    return var + (var.detach().clamp(min=eps) - var.detach())
