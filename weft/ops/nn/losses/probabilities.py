"""Losses of probabilities: how unlikely targets are under a prediction."""

from __future__ import annotations

import warnings

from ....core.batched import beneath
from ....core.derivative import nondifferentiable
from ....core.dtype import FLOAT, LEGACY_NAMES, bool_, uint8
from ....core.public import public
from ....core.tensor import Tensor
from ....core.warn import user_level
from ....engine import scalar as s
from ....engine.convert import convert
from ....families.custom_vjp import custom_vjp
from ....families.map import ONLY_FLOATS, Map, same_dtype
from ....families.monoid_op import Types
from ....families.reduce import Reduce
from ...elementwise.activation import logsigmoid
from ...tensor.node_names import with_node_name
from .arguments import check_reduction, reduced, reduction_of
from .elementwise import elementwise


def _bce_element(p, target):
    return (target - 1) * s.maximum(s.log1p(-p), -100.0) - target * s.maximum(s.log(p), -100.0)


def _bce_rule(ct, out, p, target):
    slope = (1 - p) * p
    return ct * (p - target) / slope.where(slope > 1e-12, 1e-12)


def _bce_target_rule(ct, out, p, target):
    return ct * ((-p).log1p() - p.log())  # as in PyTorch, the logarithms are bounded in the loss but not here


def _of_logits_element(x, target):
    log_sigmoid = s.minimum(x, 0.0) - s.log1p(s.exp(-s.absolute(x)))
    return (1 - target) * x - log_sigmoid


# fmt: off
_BCE       = Map("binary_cross_entropy", same_dtype, _bce_element, check=ONLY_FLOATS, derivative=(_bce_rule, _bce_target_rule))
_OF_LOGITS = Map("binary_cross_entropy_with_logits", same_dtype, _of_logits_element,
                 derivative=(lambda ct, out, x, target: ct * (x.sigmoid() - target),
                             lambda ct, out, x, target: -ct * x))
_BEYOND    = Reduce("beyond", lambda dtype, wanted: Types(dtype, (bool_,)), lambda dtype: ((0, uint8),),
                    lambda p: (convert(~((p >= 0) & (p <= 1)), uint8),), lambda a, b: (a[0] | b[0],),
                    lambda state: (convert(state[0], bool_),), derivative=nondifferentiable)
# fmt: on
_binary_cross_entropy, _of_logits = elementwise(_BCE), elementwise(_OF_LOGITS)


def _of_weighted_logits_rule(ct, out, input, target, pos_weight, *, wanted):
    gradients: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        # These are PyTorch's steps. The difference of two losses would cancel most digits of bfloat16.
        positive = pos_weight * target
        gradients[0] = ct * ((positive + 1 - target) * input.sigmoid() - positive)
    if wanted[1]:
        gradients[1] = ct * (logsigmoid(-input) - pos_weight * logsigmoid(input))
    if wanted[2]:
        gradients[2] = -ct * target * logsigmoid(input)
    return gradients


@custom_vjp(joint=_of_weighted_logits_rule)
def _of_weighted_logits(input: Tensor, target: Tensor, pos_weight: Tensor) -> Tensor:
    return (1 - target) * input - logsigmoid(input) * ((pos_weight - 1) * target + 1)


def _no_probabilities(input: Tensor, target: Tensor) -> RuntimeError:
    if target.spec.dtype is bool_:
        return RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    spec, wanted = LEGACY_NAMES[input.spec.dtype], LEGACY_NAMES[target.spec.dtype]
    return RuntimeError(f"result type {spec} can't be cast to the desired output type {wanted}")


@public(name="nn.functional.binary_cross_entropy", autocast="raise")
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
    if input.spec.dtype.is_complex:
        raise NotImplementedError(
            f"\"binary_cross_entropy\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'"
        )
    for name, each in (("input", input), ("target", target)):
        if each.spec.device.backend.has_memory and _BEYOND.direct(beneath(each).detach()).item():
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    if weight is None:
        return _binary_cross_entropy(input, target, reduction)
    loss = _binary_cross_entropy(input, target, "none")
    loss = reduced(loss * weight.expand(loss.spec.shape), reduction)
    return with_node_name(loss, "BinaryCrossEntropyBackward0")


@public(name="nn.functional.binary_cross_entropy_with_logits", autocast="raise")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute `binary_cross_entropy` of sigmoid(input), without overflow. pos_weight: of the positive examples."""
    if target.spec.shape != input.spec.shape:
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    if not input.is_floating_point():
        raise NotImplementedError(
            f"\"log_sigmoid_cpu\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'"
        )
    if target.spec.dtype.category < FLOAT:
        raise _no_probabilities(input, target)
    if weight is None and pos_weight is None and target.spec.dtype is input.spec.dtype:
        return _of_logits(input, target, reduction_of(reduction, size_average, reduce))
    if pos_weight is None:
        loss = (1 - target) * input - logsigmoid(input)
    else:
        loss = _of_weighted_logits(input, target, pos_weight)
    if weight is not None:
        loss = loss * weight
    loss = reduced(loss.to(target.spec.dtype), reduction_of(reduction, size_average, reduce))
    return with_node_name(loss, "BinaryCrossEntropyWithLogitsBackward0")


@public(name="nn.functional.kl_div", autocast="raise")
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
            stacklevel=user_level(),
        )
    for each in (input, target):
        if not each.is_floating_point():
            kind = "Complex" if each.is_complex() else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction != "batchmean":
        return reduced(loss, reduction)
    return loss.sum() / input.size(0) if input.spec.shape else loss.sum()
