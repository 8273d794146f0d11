"""Losses of scores for classes, where one class is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....core.batched import beneath
from ....core.derivative import Derivative, nondifferentiable
from ....core.dtype import LEGACY_NAMES, DType, float32, int64, uint8
from ....core.public import public
from ....core.recording import needs_recording
from ....core.spec import Spec
from ....core.tensor import Tensor
from ....engine import scalar as s
from ....engine.expr import as_expr
from ....families.indexed import Gather, IndexMap, add_elements
from ....families.kernel_graph import GraphBuilder, KernelGraph, Value
from ....families.map import Map, same_dtype
from ....families.monoid_op import Types
from ....families.reduce import Reduce
from ...reductions.softmax import build_log_softmax, log_softmax
from .arguments import check_reduction, reduced, reduction_of


def _class_dim(input: Spec) -> int:
    return 1 if len(input.shape) > 1 else 0


def _check_classes(input: Spec, target: Spec, weight: Spec | None) -> None:
    own, wanted = input.shape, target.shape
    if not own:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(own) > 1 and (not wanted or own[0] != wanted[0]):
        found = wanted[0] if wanted else "none"
        raise ValueError(f"Expected input batch_size ({own[0]}) to match target batch_size ({found}).")
    if len(own) == 1 and len(wanted) > 1 or len(own) == 2 and len(wanted) > 1:
        raise RuntimeError(
            "0D or 1D target tensor expected, multi-target not supported\n"
            f"input {list(own)}, target {list(wanted)}: one class number for each sample; of a column of them, target.squeeze(1)"
        )
    if len(own) == 1 and wanted and wanted != (1,):
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {wanted[0]}")
    if len(own) > 1 and wanted != (expected := (own[0], *own[2:])):
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(wanted)}")
    if target.dtype not in (int64, uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {LEGACY_NAMES[target.dtype]}\n"
            "The target has the numbers of classes: .long(); probabilities of classes have the shape of the input"
        )
    if target.dtype is uint8 and len(own) > 2:
        raise RuntimeError("expected scalar type Long but found Byte (targets of more than one dimension)")
    if input.dtype.kind != "f":
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{LEGACY_NAMES[input.dtype]}'")
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


def _no_such_class(index: int, dim: int, classes: int) -> IndexError:
    return IndexError(f"Target {index} is out of bounds. (there are {classes} classes)")


def _scores(spec: Spec, dim: int, target: Spec) -> IndexMap:
    """Return the score of the class of each sample."""
    rest = spec.stride[:dim] + spec.stride[dim + 1 :]
    return IndexMap(target.shape, rest, (target.stride,), (dim,), (spec.shape[dim],), (spec.stride[dim],))


def _weights(spec: Spec, _: None, target: Spec) -> IndexMap:
    """Return the weight of the class of each sample."""
    return IndexMap(target.shape, (0,) * len(target.shape), (target.stride,), (0,), spec.shape, spec.stride)


AT_CLASS = Gather("nll_loss", _scores, error=_no_such_class)
_WEIGHT = Gather("nll_weight", _weights, error=_no_such_class)
# fmt: off
_CLASS = Map("nll_class", same_dtype, lambda target, ignored: s.where(s.eq(target, ignored), 0, target))
_KEPT  = Map("nll_kept",  same_dtype, lambda like, target, ignored: s.where(s.eq(target, ignored), as_expr(0, like), 1), deciding=1,
             derivative=nondifferentiable)
# An ignored score of -inf must not make the sum NaN.
_LOSS  = Map("nll_loss",  same_dtype, lambda score, kept, weight: s.where(s.eq(kept, 0), 0, -score * weight))
_SHARE: Map = Map("nll_share", same_dtype, lambda ct, kept, weight, total: s.where(s.eq(kept, 0), 0, -ct * (weight / total)),
             derivative=(lambda ct, out, of_loss, kept, weight, total: _SHARE(ct, kept, weight, total), None, None, None))
_DENSE = Map("cross_entropy_backward", same_dtype, lambda scores, share: -s.exp(scores) * share)
# fmt: on


def _total_loss(name: str, finish: Callable) -> Reduce:
    """Return the sums of weighted scores and of weights."""
    return Reduce(
        name,
        lambda dtype, wanted: Types(dtype, (dtype, dtype)),
        lambda dtype: (0, 0),
        lambda score, kept, weight=1: (s.where(s.eq(kept, 0), 0, -score * weight), kept * weight),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        finish,
        cascade=True,
    )


_TOTALS = {
    "sum": _total_loss("nll_sum", lambda sums: sums),
    "mean": _total_loss("nll_mean", lambda sums: (sums[0] / sums[1], sums[1])),
}


def _loss_of(graph: GraphBuilder, scores: Value, target: Value, weight: Any, reduction: str) -> list[Value]:
    """Return the loss, and the sum of the weights of all targets."""
    _check_classes(scores.spec, target.spec, None if weight is None else weight.spec)
    (ignored,) = graph.numbers
    target = graph.to(_target(graph, scores.spec, target), int64)
    classes = graph.map(_CLASS, target, ignored)
    found = graph.gather(AT_CLASS, scores, (classes,), _class_dim(scores.spec))
    factors = [graph.map(_KEPT, found, target, ignored)]
    if weight is not None:
        factors.append(graph.gather(_WEIGHT, weight, (classes,), None))
    if reduction == "none":
        return [graph.map(_LOSS, found, *factors, *[1.0] * (weight is None)), graph.empty(found.spec.dtype)]
    dims = tuple(range(len(found.spec.shape)))
    return graph.reduce(_TOTALS[reduction], found, *factors, dims=dims, keepdim=False)


def _build_nll(graph: GraphBuilder, reduction: str) -> list[Value]:
    scores, target, weight = graph.inputs
    return _loss_of(graph, scores, target, weight, reduction)


def _build_cross_entropy(graph: GraphBuilder, reduction: str) -> list[Value]:
    x, target, weight = graph.inputs
    scores = build_log_softmax(graph, x, _class_dim(x.spec))
    return [*_loss_of(graph, scores, target, weight, reduction), scores]


def _target(graph: Any, spec: Spec, target: Any) -> Any:
    """A target of shape [1] of a single sample, which has no batch dim, as one without dims."""
    return graph.reshape(target, ()) if len(spec.shape) == 1 and target.spec.shape else target


def _shares(graph: Any, spec: Spec, ct: Any, target: Any, weight: Any, total: Any) -> tuple[Any, Any]:
    """Return the class of each target, and the cotangent of its score."""
    (ignored,) = graph.numbers
    target = graph.to(_target(graph, spec, target), int64)
    classes = graph.map(_CLASS, target, ignored)
    kept = graph.map(_KEPT, ct, target, ignored)
    factor = 1.0 if weight is None else graph.gather(_WEIGHT, weight, (classes,), None)
    return classes, graph.map(_SHARE, ct, kept, factor, 1.0 if total is None else total)


def _build_nll_backward(graph: Any, spec: Spec) -> list:
    classes, share = _shares(graph, spec, *graph.inputs)
    return [graph.adjoint(AT_CLASS, share, (classes,), _class_dim(spec), spec)]


def _build_cross_entropy_backward(graph: GraphBuilder) -> list[Value]:
    scores, *rest = graph.inputs
    spec = scores.spec
    dim = _class_dim(spec)
    classes, share = _shares(graph, spec, *rest)
    share_of_all = graph.reshape(share, tuple(1 if d == dim else n for d, n in enumerate(spec.shape)))
    found = graph.map(_DENSE, scores, share_of_all)
    graph.scatter(AT_CLASS.scatter, found, (classes,), share, dim, add_elements)
    return [found]


_NLL_BACKWARD = KernelGraph("nll_loss_backward", 4, _build_nll_backward, numbers=(int,))
_CROSS_ENTROPY_BACKWARD = KernelGraph(
    "cross_entropy_backward", 5, _build_cross_entropy_backward, numbers=(int,)
)


def _nll_rule(cts, outs, input, target, weight, reduction, ignored, *, specs):
    total = outs[1] if reduction == "mean" else None
    return _NLL_BACKWARD((cts[0], target, weight, total), (specs[0],), (ignored,)), None, None


def _cross_entropy_rule(cts, outs, input, target, weight, reduction, ignored, *, specs):
    ct, _, ct_scores = cts
    scores, total = outs[2], outs[1] if reduction == "mean" else None
    if ct_scores is None and not needs_recording((ct, scores)):
        return _CROSS_ENTROPY_BACKWARD((scores, ct, target, weight, total), (), (ignored,)), None, None
    found = ct_scores
    if ct is not None:
        of_loss = _NLL_BACKWARD((ct, target, weight, total), (scores.spec,), (ignored,))
        found = of_loss if found is None else found + of_loss
    return found - scores.exp() * found.sum(_class_dim(scores.spec), keepdim=True), None, None


def _check_indices(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignored: int
) -> None:
    """Raises: IndexError for classes that do not exist."""
    target = target.reshape(()) if input.spec.ndim == 1 else target
    if not input.spec.numel and bool(beneath(target == ignored).all()):
        return
    AT_CLASS(input.detach(), (_CLASS(target.to(int64), ignored),), _class_dim(input.spec))


_NLL = KernelGraph(
    "nll_loss",
    3,
    _build_nll,
    numbers=(int,),
    derivative=Derivative(joint=_nll_rule, results=(1,)),
    node_name=lambda inputs, static: f"NllLoss{'2D' * (inputs[0].ndim > 2)}Backward0",
    check_indices=_check_indices,
)
_CROSS_ENTROPY = KernelGraph(
    "cross_entropy",
    3,
    _build_cross_entropy,
    numbers=(int,),
    derivative=Derivative(joint=_cross_entropy_rule, results=(1, 2)),
    node_name=lambda inputs, static: f"NllLoss{'2D' * (inputs[0].ndim > 2)}Backward0",
    check_indices=_check_indices,
)


@public(name="nn.functional.nll_loss", autocast="raise")
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
    reduction = reduction_of(reduction, size_average, reduce)
    check_reduction(reduction)
    return _NLL((input, target, weight), (reduction,), (ignore_index,))[0]


@public(name="nn.functional.cross_entropy", autocast="raise")
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
    label_smoothing: the part of each target that is spread evenly over all classes.

    >>> import weft as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not input.spec.shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    dim = _class_dim(input.spec)
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
    if label_smoothing == 0:
        return _CROSS_ENTROPY((input, target, weight), (reduction,), (ignore_index,))[0]
    scores = log_softmax(input, dim)
    loss = _NLL((scores, target, weight), (reduction,), (ignore_index,))[0]
    even = _even_loss(scores, target, weight, ignore_index, reduction, dim)
    classes = input.spec.shape[dim]
    return loss * (1 - label_smoothing) + even * (label_smoothing / classes if classes else math.inf)


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
    """Return the loss against all classes alike."""
    loss = -(scores if weight is None else scores * _along(weight, scores, dim)).sum(dim)
    ignored: Any = target == ignore_index
    loss = loss.masked_fill(ignored, 0)
    if reduction != "mean":
        return reduced(loss, reduction)
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
    """Compute `cross_entropy` of a linear map of `input`.

    Shapes: input [N, features] or [features], linear_weight [C, *sizes, features], linear_bias [C, *sizes], target
    [N, *sizes] of classes or [N, C, *sizes] of probabilities. options: how PyTorch divides the work to save memory. weft
    computes it in one piece, in the wider dtype that the options name for narrow floats.
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
    dtype = input.spec.dtype
    wide = dtype if options is None else _accumulation_dtype(options, dtype)
    if wide is not dtype:
        input, linear_weight = input.to(wide), linear_weight.to(wide)
        target = target.to(wide) if target.spec.dtype is dtype else target
        linear_bias = None if linear_bias is None else linear_bias.to(wide)
        weight = None if weight is None else weight.to(wide)
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
    ).to(dtype)


def _accumulation_dtype(options: Any, dtype: DType) -> DType:
    """The dtype in which `options` ask to compute, if it is wider than the dtype of the input."""
    chosen = options.acc_dtype
    if chosen is None and options.acc_policy == "auto":
        chosen = float32
    return chosen if chosen is not None and chosen.itemsize > dtype.itemsize else dtype
