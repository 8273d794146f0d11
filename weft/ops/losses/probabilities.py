"""Losses of probabilities: how unlikely targets are under a prediction."""

from __future__ import annotations

import warnings

from ...core.dtype import LEGACY_NAMES
from ...core.op import public
from ...core.tensor import Tensor
from ..activation import logsigmoid
from .arguments import check_reduction, reduced, reduction_of


@public(name="nn.functional.binary_cross_entropy")
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(target log(input) + (1 - target) log(1 - input)) of probabilities; logarithms are at least -100.

    Raises: ValueError for sizes that differ, RuntimeError for elements outside of [0, 1].
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_reduction(reduction)
    if target.spec.shape != input.spec.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.spec.dtype is not input.spec.dtype:
        raise RuntimeError(
            f"Found dtype {LEGACY_NAMES[target.spec.dtype]} but expected {LEGACY_NAMES[input.spec.dtype]}"
        )
    for name, each in (("input", input), ("target", target)):
        if each.spec.numel and each.spec.device.backend.has_memory:
            low, high = each.detach().aminmax()
            if not (low.item() >= 0 and high.item() <= 1):
                raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    loss = (target - 1) * (-input).log1p().clamp_min(-100) - target * input.log().clamp_min(-100)
    if weight is not None:
        loss = loss * weight.expand(loss.spec.shape)
    return reduced(loss, reduction)


@public(name="nn.functional.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), without overflow. pos_weight: of the positive examples."""
    if target.spec.shape != input.spec.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    log_probability = logsigmoid(input)
    if pos_weight is not None:
        log_probability = log_probability * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - log_probability
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@public(name="nn.functional.kl_div")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """The Kullback-Leibler divergence target * (log(target) - input); `input` holds logarithms.

    reduction="batchmean" divides the sum by the size of the first dim, which is the mathematical definition.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if not input.spec.dtype.category >= 2 <= target.spec.dtype.category:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction != "batchmean":
        return reduced(loss, reduction)
    return loss.sum() / input.size(0) if input.spec.shape else loss.sum()
