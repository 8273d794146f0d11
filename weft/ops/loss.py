"""Losses: how far predictions are from targets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..core.dtype import LEGACY_NAMES, int32, int64, uint8
from ..core.iteration import broadcast_shapes
from ..core.op import FUNCTIONS, PlanCache, needs_recording, public
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine import scalar as s
from ..engine.expr import lift
from ..families.indexed import Access, Take
from ..families.map import Map, keep
from ..families.reduce import Reduce, Types
from ..families.step import step
from .activation import logsigmoid
from .creation import full_like
from .reduction import log_softmax
from .windows import wide

REDUCTIONS = ("none", "mean", "sum")


# ---- Arguments -----------------------------------------------------------------------------------------------------------


def _reduction(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction, which two older arguments may name instead."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        found = "none"
    else:
        found = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
        stacklevel=3,
    )
    return found


def check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction (one of {', '.join(REDUCTIONS)})")


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    check_reduction(reduction)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _warn_unless_same_size(input: Tensor, target: Tensor) -> None:
    if target.spec.shape != input.spec.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
            "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


def _check_float(name: str, input: Tensor, target: Tensor) -> None:
    for each in (input, target):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"{name}_loss(): arguments 'input' and 'target' must be Tensor, not {type(each).__name__}"
            )
    if (
        input.spec.dtype.kind != "f"
        and target.spec.dtype.kind != "f"
        or "c"
        in (
            input.spec.dtype.kind,
            target.spec.dtype.kind,
        )
    ):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


def _weighted(loss: Tensor, input: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduce a loss whose elements may have weights; the mean divides by their sum."""
    if weight is None:
        return _reduced(loss, reduction)
    if weight.spec.shape != input.spec.shape:
        raise ValueError("Weights and input must have the same size.")
    check_reduction(reduction)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)


# ---- Regression ------------------------------------------------------------------------------------------------------------


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
    _check_float("mse", input, target)
    _warn_unless_same_size(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if weight is None:
        check_reduction(reduction)
        return _mse(input, target, reduction)
    difference = input - target
    return _weighted(difference * difference, input, weight, reduction)


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
    return _reduced(_SQUARED_DIFFERENCE(input, target), reduction)


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
    _warn_unless_same_size(input, target)
    return _weighted((input - target).abs(), input, weight, _reduction(reduction, size_average, reduce))


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
    _warn_unless_same_size(input, target)
    reduction = _reduction(reduction, size_average, reduce)
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    _check_float("smooth_l1", input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    distance = (input - target).abs()
    near, far = distance * distance * (0.5 / beta), distance - 0.5 * beta
    return _reduced(near.where(distance < beta, far), reduction)


@public(name="nn.functional.huber_loss")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Half the squared difference where it is at most `delta`, else delta times (the absolute difference - delta / 2).

    "mean" divides by the number of elements, whatever their weights.
    """
    _check_float("huber", input, target)
    _warn_unless_same_size(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    distance = (input - target).abs()
    near, far = distance * distance * 0.5, (distance - 0.5 * delta) * delta
    loss = near.where(distance <= delta, far)
    if weight is None:
        return _reduced(loss, reduction)
    if weight.spec.shape != input.spec.shape:
        raise ValueError("Weights and input must have the same size.")
    return _reduced(loss * weight, reduction)


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
    reduction = _reduction(reduction, size_average, reduce)
    check_reduction(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


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
    return _reduced(loss, reduction)


def _clamped_value(var: Tensor, eps: float) -> Tensor:
    """At least eps, but with derivatives as if nothing had been clamped."""
    return var + (var.detach().clamp(min=eps) - var.detach())


# ---- Probabilities -----------------------------------------------------------------------------------------------------------


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
    reduction = _reduction(reduction, size_average, reduce)
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
    return _reduced(loss, reduction)


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
    return _reduced(loss, _reduction(reduction, size_average, reduce))


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
    reduction = _reduction(reduction, size_average, reduce)
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
        return _reduced(loss, reduction)
    return loss.sum() / input.size(0) if input.spec.shape else loss.sum()


# ---- Classes -------------------------------------------------------------------------------------------------------------------


def _class_dim(input: Tensor) -> int:
    return 1 if input.spec.ndim > 1 else 0


def _check_classes(input: Spec, target: Spec, weight: Spec | None) -> None:
    own, wanted = input.shape, target.shape
    if not own:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(own) > 1 and (not wanted or own[0] != wanted[0]):
        found = wanted[0] if wanted else "none"
        raise ValueError(f"Expected input batch_size ({own[0]}) to match target batch_size ({found}).")
    if len(own) == 1 and len(wanted) > 1 or len(own) == 2 and len(wanted) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    expected = (own[0], *own[2:]) if len(own) > 1 else wanted
    if wanted != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(wanted)}")
    if target.dtype not in (int64, uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {LEGACY_NAMES[target.dtype]}")
    if target.dtype is uint8 and len(own) > 2:
        raise RuntimeError("expected scalar type Long but found Byte (targets of more than one dimension)")
    classes = own[1 if len(own) > 1 else 0]
    if weight is not None:
        if weight.shape != (classes,):
            raise RuntimeError(
                f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
                f"shape: {list(weight.shape)}"
            )
        if weight.dtype is not input.dtype:
            raise RuntimeError(
                f"expected scalar type {LEGACY_NAMES[input.dtype]} but found {LEGACY_NAMES[weight.dtype]}"
            )


_CHECKED = PlanCache(_check_classes)


def _scores(own: Spec, dim: int, target: Spec) -> Access:
    """Of each sample the score of its class."""
    rest = own.stride[:dim] + own.stride[dim + 1 :]
    return Access(target.shape, rest, (target.stride,), (dim,), (own.shape[dim],), (own.stride[dim],))


def _no_such_class(index: int, dim: int, classes: int) -> IndexError:
    return IndexError(f"Target {index} is out of bounds. (there are {classes} classes)")


_AT_CLASS = Take("nll_loss", _scores, error=_no_such_class)
# fmt: off
_CLASS    = Map("nll_class",  keep, lambda target, ignored: s.where(s.eq(target, ignored), 0, target))
_KEPT     = Map("nll_kept",   keep, lambda like, target, ignored: s.where(s.eq(target, ignored), lift(0, like), 1), deciding=1)
_UNLESS   = Map("nll_score",  keep, lambda score, target, ignored: s.where(s.eq(target, ignored), 0, score), deciding=1)
_SHARE    = Map("nll_share",  keep, lambda weight, total: s.where(s.eq(weight, 0), 0, weight / total))
# fmt: on


def _total_loss(name: str, finish: Callable) -> Reduce:
    """The sums of weighted scores and of weights."""
    return Reduce(
        name,
        lambda dtype, wanted: Types(dtype, (dtype, dtype)),
        lambda dtype: (0, 0),
        lambda score, weight: (-score * weight, weight),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        finish,
        cascade=True,
    )


_TOTALS = {
    "sum": _total_loss("nll_sum", lambda sums: sums),
    "mean": _total_loss("nll_mean", lambda sums: (sums[0] / sums[1], sums[1])),
}


def _negative_log_likelihood(
    input: Tensor, target: Tensor, weight, ignore_index: int, reduction: str
) -> Tensor:
    _CHECKED[input.spec, target.spec, None if weight is None else weight.spec]
    if target.spec.dtype is not int64:
        target = target.to(int64)
    return _nll(input, target, weight, ignore_index, reduction)[0]


def _weights_of(classes: Tensor, like: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> Tensor:
    """The weight of the class of each target, 0 where it is ignored."""
    kept = _KEPT(like.detach(), target, ignored)
    return (
        kept if weight is None else weight.index_select(0, classes.flatten()).view(classes.spec.shape) * kept
    )


def _nll_rule(cts, outs, input, target, weight, ignore_index, reduction, *, specs):
    ct, (_, total) = cts[0], outs
    classes = _CLASS(target, ignore_index)
    weights = _weights_of(classes, total, target, weight, ignore_index)
    if reduction == "mean":
        weights = _SHARE(weights, total.detach())
    return (_AT_CLASS.adjoint(-ct * weights, (classes,), 1 if len(specs[0].shape) > 1 else 0, specs[0]),)


@step(joint=_nll_rule, results=(1,))
def _nll(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> tuple[Tensor, Tensor]:
    """The loss, and the sum of the weights of all targets."""
    classes = _CLASS(target, ignore_index)
    scores = _AT_CLASS(input, (classes,), _class_dim(input))
    scores = _UNLESS(scores, target, ignore_index)  # scores of -inf that are ignored do not count
    weights = _weights_of(classes, scores, target, weight, ignore_index)
    if reduction == "none":
        return -scores * weights, weights.sum()
    return _TOTALS[reduction](scores, weights, dims=tuple(range(len(scores.spec.shape))))


_nll.node_name = "NllLossBackward0"


@public(name="nn.functional.nll_loss")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability, in `input`, of the class in `target`; "mean" divides by the sum of weights.

    Shapes: input [N, C, ...] with target [N, ...], or [C] with []. Raises: IndexError for classes that do not exist.
    """
    reduction = _reduction(reduction, size_average, reduce)
    check_reduction(reduction)
    return _negative_log_likelihood(input, target, weight, ignore_index, reduction)


@public(name="nn.functional.cross_entropy")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Minus the log of the softmax of `input` at the class in `target`, or averaged over its class probabilities.

    Shapes: input [N, C, ...] with target [N, ...] of classes or like input of probabilities; or [C] with [] or [C].
    label_smoothing: which part of a target is spread evenly over all classes.

    >>> import weft as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    reduction = _reduction(reduction, size_average, reduce)
    check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not input.spec.shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    dim = _class_dim(input)
    if input.spec.shape == target.spec.shape:
        if target.spec.dtype.kind != "f":
            raise RuntimeError(
                f"Expected floating point type for target with class probabilities, got {LEGACY_NAMES[target.spec.dtype]}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _cross_entropy_of_probabilities(
            log_softmax(input, dim), target, weight, reduction, label_smoothing, dim
        )
    scores = log_softmax(input, dim)
    loss = _negative_log_likelihood(scores, target, weight, ignore_index, reduction)
    if label_smoothing == 0:
        return loss
    even = _even_loss(scores, target, weight, ignore_index, reduction, dim)
    return loss * (1 - label_smoothing) + even * (label_smoothing / input.spec.shape[dim])


def _cross_entropy_of_probabilities(
    scores, target, weight, reduction: str, label_smoothing: float, dim: int
) -> Tensor:
    classes = scores.spec.shape[dim]
    if weight is not None and weight.spec.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight "
            f"tensor of shape: {list(weight.spec.shape)}"
        )
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = scores * target if weight is None else scores * target * _along(weight, scores, dim)
    if reduction == "none":
        return -terms.sum(dim)
    total = -terms.sum()
    return total / (scores.spec.numel / max(classes, 1)) if reduction == "mean" else total


def _along(weight: Tensor, input: Tensor, dim: int) -> Tensor:
    return weight.view(-1, *[1] * (input.spec.ndim - dim - 1))


def _even_loss(scores: Tensor, target: Tensor, weight, ignore_index: int, reduction: str, dim: int) -> Tensor:
    """The loss against all classes alike."""
    loss = -(scores if weight is None else scores * _along(weight, scores, dim)).sum(dim)
    ignored: Any = target == ignore_index
    loss = loss.masked_fill(ignored, 0)
    if reduction != "mean":
        return _reduced(loss, reduction)
    if weight is None:
        return loss.sum() / (~ignored).sum()
    weights = weight.index_select(0, target.to(int64).masked_fill(ignored, 0).flatten()).view(
        target.spec.shape
    )
    return loss.sum() / weights.masked_fill(ignored, 0).sum()


@public(name="nn.functional.linear_cross_entropy")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """`cross_entropy` of a linear map of `input`.

    Shapes: input [N, features] or [features], linear_weight [C, *sizes, features], linear_bias [C, *sizes], target
    [N, *sizes] of classes or [N, C, *sizes] of probabilities. options: how PyTorch divides the work to save memory; the
    result does not depend on it, and weft computes it in one piece.
    """
    if not 1 <= input.spec.ndim <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.spec.ndim}")
    if linear_weight.spec.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.spec.ndim}"
        )
    features = input.spec.shape[-1]
    *made, expected = linear_weight.spec.shape
    if features != expected:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {features} and {expected}, respectively"
        )
    if linear_bias is not None and list(linear_bias.spec.shape) != made:
        raise RuntimeError(f"expected linear_bias shape {tuple(made)}, got {tuple(linear_bias.spec.shape)}")
    if len(made) > 1 and input.spec.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.spec.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.spec.shape)}"
        )
    if ignore_index is not None and target.spec.shape == (*input.spec.shape[:-1], *made):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    scores = input.matmul(linear_weight.reshape(-1, features).t())
    if linear_bias is not None:
        scores = scores + linear_bias.reshape(-1)
    return cross_entropy(
        scores.view(*input.spec.shape[:-1], *made),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


# ---- Margins -------------------------------------------------------------------------------------------------------------------


@public(name="nn.functional.soft_margin_loss")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)) for targets of 1 and -1."""
    return _reduced((-target * input).exp().log1p(), _reduction(reduction, size_average, reduce))


@public(name="nn.functional.hinge_embedding_loss")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance `input` where the target is 1; what it lacks to `margin` where it is -1."""
    (source,) = wide(input.spec.dtype, input)
    apart = (margin - source).clamp_min(0).masked_fill(target == 1, 0)
    loss = apart + source.masked_fill(target == -1, 0)
    return _reduced(loss, _reduction(reduction, size_average, reduce)).to(input.spec.dtype)


@public(name="nn.functional.margin_ranking_loss")
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)); target 1: input1 should be larger, -1: smaller."""
    reduction = _reduction(reduction, size_average, reduce)
    if not input1.spec.ndim == input2.spec.ndim == target.spec.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@public(name="nn.functional.multi_margin_loss")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of max(0, margin - input at the target + input) ** p, the target's class left out.

    Shapes: input [N, C] with target [N], or [C] with [].
    """
    reduction = _reduction(reduction, size_average, reduce)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    input = input if input.spec.shape else input.reshape(1)
    own = input.spec.shape
    if len(own) > 2 or 0 in own[1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(own)}"
        )
    batch = own[0] if len(own) == 2 else 1
    if target.spec.ndim > 1 or target.spec.numel != batch:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{batch}], but got {list(target.spec.shape)}. Input has shape {list(own)}."
        )
    classes = own[-1]
    if weight is not None and weight.spec.ndim != 1:
        raise ValueError(f"weight must be one-dimensional, got {list(weight.spec.shape)}")
    if weight is not None and weight.spec.numel != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.spec.shape)}")
    if target.spec.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {LEGACY_NAMES[target.spec.dtype]}")
    _check_margin_float("multi_margin_loss_cpu_kernel", input)
    if target.spec.numel and target.spec.device.backend.has_memory:
        low, high = (each.item() for each in target.aminmax())
        if low < 0 or high >= classes:
            raise RuntimeError(f"target out of range (there are {classes} classes)")
    index = target.reshape(-1, 1) if len(own) == 2 else target.reshape(1)
    lacking = (margin - input.gather(-1, index) + input).clamp_min(0)
    lacking = lacking if p == 1 else lacking * lacking
    if weight is not None:
        lacking = lacking * weight.reshape(-1).index_select(0, index.flatten()).view(index.spec.shape)
    loss = lacking.scatter(-1, index, 0.0).sum(-1) / classes
    return _reduced(loss if target.spec.ndim else loss.reshape(()), reduction)


def _check_margin_float(name: str, input: Tensor) -> None:
    if input.spec.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


@public(name="nn.functional.multilabel_margin_loss")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, 1 - input at a target + input elsewhere), over all pairs, divided by the number of classes.

    Shapes: input and target [N, C], or [C]; a row of `target` lists classes up to the first -1.
    """
    reduction = _reduction(reduction, size_average, reduce)
    check_reduction(reduction)
    own = input.spec.shape
    if len(own) > 2 or 0 in own[1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(own)}"
        )
    if target.spec.shape != own:
        raise RuntimeError(
            f"inconsistent target size: {list(target.spec.shape)} for input of size: {list(own)}"
        )
    classes = own[-1] if own else 1
    if target.spec.numel and target.spec.device.backend.has_memory:
        low, high = (each.item() for each in target.aminmax())
        if low < -1 or high >= classes:
            raise RuntimeError(f"argument #2 'target' is out of range (there are {classes} classes)")
    if target.spec.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {LEGACY_NAMES[target.spec.dtype]}")
    rows, targets = input.reshape(-1, classes), target.reshape(-1, classes)
    listed = (targets >= 0).to(int32).cumprod(1) > 0
    index = targets.masked_fill(~listed, 0)
    counts = (rows * 0).detach().scatter_add(1, index, listed.to(rows.spec.dtype))
    others = (counts == 0).unsqueeze(1)
    lacking = (1 - rows.gather(1, index).unsqueeze(2) + rows.unsqueeze(1)).clamp_min(0)
    loss = lacking.masked_fill(~(listed.unsqueeze(2) & others), 0).sum((1, 2)) / classes
    return _reduced(loss if len(own) == 2 else loss.squeeze(0), reduction)


@public(name="nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes (the last dim) of `binary_cross_entropy_with_logits`."""
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(-1) / input.size(-1), _reduction(reduction, size_average, reduce))


@public(name="nn.functional.cosine_embedding_loss")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1, what the cosine exceeds `margin` by where it is -1.

    Shapes: inputs [N, D] with target [N], or [D] with [].
    """
    reduction = _reduction(reduction, size_average, reduce)
    sizes = f"{list(input1.spec.shape)} and {list(input2.spec.shape)}"
    dims = target.spec.ndim
    if dims not in (0, 1):
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported: got {list(target.spec.shape)}"
        )
    if input1.spec.ndim != dims + 1 or input2.spec.ndim != dims + 1:
        raise RuntimeError(
            f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with sizes {sizes}."
        )
    tiny = 1e-12
    product = (input1 * input2).sum(dims)
    squares = ((input1 * input1).sum(dims) + tiny) * ((input2 * input2).sum(dims) + tiny)
    cosine = product / squares.sqrt()
    together = (1 - cosine).masked_fill(target != 1, 0)
    apart = (cosine - margin).clamp_min(0).masked_fill(target != -1, 0)
    return _reduced(together + apart, reduction)


# ---- Triplets -------------------------------------------------------------------------------------------------------------------


def _triplet_loss(
    name: str, distance: Callable, anchor, positive, negative, margin: float, swap: bool, reduction: str
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.spec.ndim == positive.spec.ndim == negative.spec.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.spec.ndim}D, positive {positive.spec.ndim}D, and negative {negative.spec.ndim}D inputs ({name})"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), reduction)


@public(name="nn.functional.triplet_margin_loss")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to the positive - distance to the negative + margin), by the `p`-norm along the last dim.

    swap: take the distance between positive and negative where that is smaller than the anchor's.
    """
    return _triplet_loss(
        "triplet_margin_loss",
        lambda a, b: FUNCTIONS["pairwise_distance"](a, b, p, eps),
        anchor,
        positive,
        negative,
        margin,
        swap,
        _reduction(reduction, size_average, reduce),
    )


@public(name="nn.functional.triplet_margin_with_distance_loss")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own; the Euclidean one unless given."""
    distance = distance_function or FUNCTIONS["pairwise_distance"]
    return _triplet_loss(
        "triplet_margin_with_distance_loss", distance, anchor, positive, negative, margin, swap, reduction
    )
