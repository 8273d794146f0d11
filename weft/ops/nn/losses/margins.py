"""Losses that are zero where scores are right by a margin."""

from __future__ import annotations

from typing import Any

from ....core.batched import beneath
from ....core.dtype import FLOAT, LEGACY_NAMES, get_default_dtype, int32, int64
from ....core.iteration import broadcast_shapes
from ....core.outputs import check_dtype
from ....core.public import public
from ....core.tensor import Tensor
from ...elementwise.activation import logsigmoid
from ...tensor.node_names import with_node_name
from ..window_views import wide
from .arguments import check_reduction, check_result, reduced, reduction_of


@public(name="nn.functional.soft_margin_loss", autocast="raise")
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute log(1 + exp(-target * input)) for targets of 1 and -1."""
    sizes = broadcast_shapes("soft_margin_loss", input.shape, target.shape)
    if sizes != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(sizes)}\n"
            f"soft_margin_loss: target {list(target.shape)} must broadcast to input {list(input.shape)}"
        )
    check_result("soft_margin_loss", input, target)
    if not (input.is_floating_point() or input.is_complex()):
        check_dtype(input.spec, get_default_dtype(), "soft_margin_loss")
    # The product is negated, because targets of unsigned integers have no negative.
    loss = (-(target.to(input.spec.dtype) * input)).exp().log1p()
    loss = reduced(loss, reduction_of(reduction, size_average, reduce))
    return with_node_name(loss, "SoftMarginLossBackward0")


@public(name="nn.functional.hinge_embedding_loss", autocast="raise")
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The distance `input` where the target is 1; max(0, margin - input) where the target is -1."""
    (source,) = wide(input.spec.dtype, input)
    apart = (margin - source).clamp_min(0).masked_fill(target == 1, 0)
    loss = apart + source.masked_fill(target == -1, 0)
    reduction, own = reduction_of(reduction, size_average, reduce), input.spec.dtype
    return reduced(loss, reduction).to(own) if own.category >= FLOAT else reduced(loss.to(own), reduction)


@public(name="nn.functional.margin_ranking_loss", autocast="raise")
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
    reduction = reduction_of(reduction, size_average, reduce)
    if not input1.spec.ndim == input2.spec.ndim == target.spec.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return ranking_loss(input1, input2, target, margin, reduction)


def ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: str) -> Tensor:
    """`margin_ranking_loss` of tensors that broadcast."""
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@public(name="nn.functional.multi_margin_loss", autocast="raise")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: Any = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of max(0, margin - input at the target + input) ** p, without the target's class.

    Shapes: input [N, C] with target [N], or [C] with [].
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    input = input if input.spec.shape else input.reshape(1)
    own = input.spec.shape
    if len(own) > 2 or 0 in own[-1:]:
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
    _check_float("multi_margin_loss_cpu_kernel", input)
    if target.spec.numel and target.spec.device.backend.has_memory:
        low, high = (each.item() for each in beneath(target).aminmax())
        if low < 0 or high >= classes:
            raise RuntimeError(f"target out of range (there are {classes} classes)")
    index = target.reshape(-1, 1) if len(own) == 2 else target.reshape(1)
    lacking = (margin - input.gather(-1, index) + input).clamp_min(0)
    lacking = lacking if p == 1 else lacking * lacking
    if weight is not None:
        lacking = lacking * weight.reshape(-1).index_select(0, index.flatten()).view(index.spec.shape)
    loss = lacking.scatter(-1, index, 0.0).sum(-1) / classes
    loss = reduced(loss.reshape(target.spec.shape), reduction)
    return with_node_name(loss, "MultiMarginLossBackward0")


def _check_float(name: str, input: Tensor) -> None:
    if input.spec.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


@public(name="nn.functional.multilabel_margin_loss", autocast="raise")
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, 1 - input at a target + input elsewhere), over all pairs, divided by the number of classes.

    Shapes: input and target [N, C], or [C]; a row of `target` lists classes up to the first -1.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_reduction(reduction)
    own = input.spec.shape
    if len(own) > 2 or 0 in own[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(own)}"
        )
    if target.spec.shape != own and {target.spec.shape, own} != {(), (1,)}:
        raise RuntimeError(
            f"inconsistent target size: {list(target.spec.shape)} for input of size: {list(own)}"
        )
    classes = own[-1] if own else 1
    if target.spec.numel and target.spec.device.backend.has_memory:
        low, high = (each.item() for each in beneath(target).aminmax())
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
    loss = reduced(loss if len(own) == 2 else loss.squeeze(0), reduction)
    return with_node_name(loss, "MultilabelMarginLossBackward0")


@public(name="nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes (the last dim) of `binary_cross_entropy_with_logits`."""
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction_of(reduction, size_average, reduce))


@public(name="nn.functional.cosine_embedding_loss", autocast="raise")
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cosine where the target is 1; max(0, cosine - margin) where the target is -1.

    Shapes: inputs [N, D] with target [N], or [D] with [].
    """
    reduction = reduction_of(reduction, size_average, reduce)
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
    return reduced(together + apart, reduction)
