"""Computes the loss of a labelling over all its alignments with the input: connectionist temporal classification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.arguments import integers
from ....core.checking import sizes
from ....core.derivative import differentiate
from ....core.dtype import LEGACY_NAMES, bool_, float64, int32, int64
from ....core.public import public
from ....core.spec import Spec, contiguous_spec
from ....core.tensor import Tensor, address, empty
from ....families.array_op import array, array_op, on_device
from ...creation.creation import zeros_like
from ...creation.ranges import arange
from ...order.kernels import bare
from .arguments import REDUCTIONS, check_reduction


@public("function", "nn.functional.ctc_loss", autocast="raise")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Any = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability of all alignments of target sequences with longer inputs.

    Shapes: log_probs [T, N, C] or [T, C]; targets [N, S], or all of them one after the other; lengths [N]. "mean" first
    divides by the target lengths. Source: Graves et al. 2006, "Connectionist temporal classification".
    """
    reduction = REDUCTIONS[reduction] if isinstance(reduction, int) else reduction
    check_reduction(reduction)
    if not log_probs.spec.numel:
        raise RuntimeError("log_probs tensor must not be empty")
    batched = log_probs.spec.ndim == 3
    inputs, lengths = _lengths(input_lengths), _lengths(target_lengths)
    losses, _ = alignment_losses(
        log_probs if batched else log_probs.unsqueeze(1), targets, inputs, lengths, blank, zero_infinity
    )
    if zero_infinity:
        losses = losses.masked_fill(losses == math.inf, 0)
    if reduction == "mean":
        divisor = on_device(np.maximum(np.array(lengths, np.int64), 1), losses.spec.device).to(
            losses.spec.dtype
        )
        return (losses / divisor).mean()
    if reduction == "sum":
        return losses.sum()
    return losses if batched else losses.squeeze(0)


def _lengths(given: Any) -> tuple[int, ...]:
    if not isinstance(given, Tensor):
        return sizes(given, "ctc_loss", "lengths")
    if given.spec.dtype.category != 1:
        raise RuntimeError(f"input_lengths and target_lengths must be integral, got {given.spec.dtype}")
    if not given.spec.device.backend.has_memory:  # the shape of the losses does not depend on the lengths
        return (0,) * given.spec.numel
    return tuple(given.reshape(-1).tolist())


@array_op(node_name="CtcLossBackward0")
def alignment_losses(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: tuple,
    target_lengths: tuple,
    blank: int,
    zero_infinity: bool,
) -> tuple[Tensor, Tensor]:
    """The loss of each sequence, and the forward variables [N, T, 2 S + 1] that its derivative needs.

    `zero_infinity`: the derivative of an infinite loss is 0 instead of NaN.
    """
    if log_probs.spec.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(
            f"\"ctc_loss_cpu\" not implemented for '{LEGACY_NAMES[log_probs.spec.dtype]}'"
        )
    if log_probs.spec.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {log_probs.spec.ndim}-dimensional tensor for argument #1 'log_probs'"
        )
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        integers((lengths,), "ctc_loss", name)
    scores = bare(log_probs)
    steps, batch, classes = scores.shape
    labels = _padded_labels(targets, input_lengths, target_lengths, steps, batch, classes, blank)
    outside = (labels < 0) | (labels >= classes)
    if outside.any():
        raise IndexError(
            f"ctc_loss: target {int(labels[outside][0])} is out of bounds, there are {classes} classes"
        )
    ends = _on(scores, target_lengths)
    states, skips, beyond = _alignment_states(labels, ends, blank)
    start = scores.new_full((steps, *states.shape), -math.inf)
    start[:1, :, :2] = 0
    paths = _paths(_emitted(scores, states, beyond), start, _penalties(skips, scores))
    alpha = paths[1:, :, 2:].movedim(0, 1).contiguous()
    return _final_losses(alpha, _on(scores, input_lengths), ends), alpha


@alignment_losses.spec_rule
def _alignment_specs(
    log_probs: Spec, targets: Spec, inputs: tuple, lengths: tuple, blank: int, zero_infinity: bool
) -> tuple[Spec, Spec]:
    steps, batch, _ = log_probs.shape
    states = 2 * max(lengths, default=0) + 1
    return contiguous_spec((batch,), log_probs.dtype), contiguous_spec(
        (batch, steps, states), log_probs.dtype
    )


def _on(scores: Tensor, lengths: tuple) -> Tensor:
    """The lengths on the device of the scores."""
    return on_device(np.array(lengths, np.int64), scores.spec.device)


def _penalties(allowed: Tensor, scores: Tensor) -> Tensor:
    """0 where something is allowed, else -inf; in the dtype of the scores."""
    return scores.new_zeros(allowed.shape).masked_fill(~allowed, -math.inf)


def _emitted(scores: Tensor, states: Tensor, beyond: Tensor) -> Tensor:
    """The scores of the classes of the states [T, N, 2 S + 1]; -inf for states that are past the end."""
    return scores.gather(2, states.expand(len(scores), *states.shape)).masked_fill(beyond, -math.inf)


def _paths(emitted: Tensor, start: Tensor, skips: Tensor) -> Tensor:
    """Return logarithms [1 + T, N, 2 + 2 S + 1] of the probabilities of all ways to a state; -inf in the first step.

    A way begins with the probability `start`. It stays in its state, or goes on by one state, or by two where `skips` is 0.
    """
    steps, batch, states = emitted.shape
    paths = emitted.new_full((1 + steps, batch, 2 + states), -math.inf)
    run = emitted.spec.device.backend.extras.get("alignments")
    if run is None:
        _follow(*(array(each) for each in (paths, emitted, start, skips)))
    elif emitted.spec.numel:
        addresses = [address(each) for each in (paths, emitted.contiguous(), start.contiguous(), skips)]
        run(*addresses, (steps, batch, states), emitted.spec.dtype)
    return paths


def _follow(paths: np.ndarray, emitted: np.ndarray, start: np.ndarray, skips: np.ndarray) -> None:
    """Write the paths, on a device without a kernel for them."""
    with np.errstate(all="ignore"):
        for before, after, first, score in zip(paths, paths[1:], start, emitted, strict=False):
            stayed = np.logaddexp(before[:, 2:], before[:, 1:-1])
            after[:, 2:] = np.maximum(np.logaddexp(stayed, before[:, :-2] + skips), first) + score


def _final_losses(alpha: Tensor, inputs: Tensor, ends: Tensor) -> Tensor:
    """Minus the logarithm of the probability of each sequence: that it ends in its last label or in the blank behind it."""
    steps = alpha.shape[1]
    nothing = alpha.new_full(ends.shape, math.inf).masked_fill(ends == 0, -0.0)
    if not steps:
        return nothing
    last = alpha.gather(1, (inputs - 1).clamp(min=0).reshape(-1, 1, 1).expand(-1, 1, alpha.shape[2]))[:, 0]
    blank, label = (
        last.gather(1, each.clamp(min=0).unsqueeze(1)).squeeze(1) for each in (2 * ends, 2 * ends - 1)
    )
    return (-blank.logaddexp(label.masked_fill(ends == 0, -math.inf))).where(inputs > 0, nothing)


def _alignment_states(labels: Tensor, ends: Tensor, blank: int) -> tuple[Tensor, Tensor, Tensor]:
    """[N, 2 S + 1] each: the class of a state, whether it may follow the one two before it, whether it is past the end."""
    # A blank stands between, before and behind all labels.
    batch, longest = labels.shape
    states = labels.new_full((batch, 2 * longest + 1), blank)
    states[:, 1::2] = labels
    skips = empty(contiguous_spec(states.spec.shape, bool_, states.spec.device)).fill_(False)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return states, skips, arange(2 * longest + 1, device=labels.device) > 2 * ends.unsqueeze(1)


@array_op
def _ctc_loss_backward(
    ct: Tensor,
    losses: Tensor,
    alpha: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    inputs: tuple,
    lengths: tuple,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """The cotangent of log_probs, taken to be a log_softmax, as PyTorch takes it. Source: Graves et al. 2006, eq. 16."""
    scores = bare(log_probs)
    steps, batch, classes = scores.shape
    labels = _padded_labels(targets, inputs, lengths, steps, batch, classes, blank)
    ends, last = _on(scores, lengths), _on(scores, inputs) - 1
    states, skips, beyond = _alignment_states(labels, ends, blank)
    step = arange(steps, device=scores.device)
    ended = (step.unsqueeze(1) > last).unsqueeze(2)
    emitted = _emitted(scores, states, beyond).masked_fill(ended, -math.inf)
    # The ways from a state to the end are the ways to it if steps and states are counted from the end.
    from_end = 2 * ends.unsqueeze(1) - arange(states.shape[1], device=scores.device)
    is_last = (step.unsqueeze(1) == last).unsqueeze(2) & ((from_end == 0) | (from_end == 1))
    allowed = zeros_like(skips)
    allowed[:, 2:] = skips[:, 2:].flip(1)
    start = _penalties(is_last.flip(0, 2), scores)
    beta = _paths(emitted.flip(0, 2), start, _penalties(allowed, scores))[1:, :, 2:].flip(0, 2)
    together = bare(alpha).movedim(1, 0) + beta - emitted + losses.unsqueeze(1)
    likely = together.exp().nan_to_num(nan=0.0)
    # The probability of each class at each step, summed over the states of the class.
    classes_of_states = states.expand(steps, *states.shape)
    occupied = zeros_like(scores, dtype=float64).scatter_add_(2, classes_of_states, likely.double())
    found = ((scores.double().exp() - occupied) * ct.unsqueeze(1)).to(scores.dtype)
    # As in PyTorch, NaN for classes without a label, too.
    found = found.masked_fill(scores == -math.inf, math.nan)
    unreachable = (losses == math.inf).unsqueeze(1)
    return found.masked_fill(unreachable, 0 if zero_infinity else math.nan).masked_fill(ended, 0)


@_ctc_loss_backward.spec_rule
def _ctc_loss_backward_spec(ct: Spec, losses: Spec, alpha: Spec, log_probs: Spec, *others: Any) -> Spec:
    return contiguous_spec(log_probs.shape, log_probs.dtype)


def _alignment_rule(cts, outs, log_probs, targets, *static):
    return (_ctc_loss_backward(cts[0], *outs, log_probs, targets, *static),)


differentiate(alignment_losses, joint=_alignment_rule)


def _padded_labels(
    targets: Tensor, input_lengths, target_lengths, steps: int, batch: int, classes: int, blank: int
) -> Tensor:
    """Return the target sequences as rows [N, S]."""
    if targets.spec.dtype not in (int64, int32):
        raise RuntimeError(f"targets must be int32 or int64, got {targets.spec.dtype}")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size ({batch}), got {len(lengths)}")
        if any(length < 0 for length in lengths):
            raise RuntimeError(f"Expected {name} to have value at least 0, but got {min(lengths)}")
    if any(length > steps for length in input_lengths):
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {max(input_lengths)}"
        )
    longest = max(target_lengths, default=0)
    ends = _on(targets, target_lengths).unsqueeze(1)
    place = arange(longest, device=targets.device)
    if targets.spec.ndim == 1:
        if targets.spec.numel != sum(target_lengths):
            raise RuntimeError(
                f"Expected targets of {sum(target_lengths)} labels (the sum of target_lengths), got {targets.spec.numel}"
            )
        rows = (
            targets.index_select(0, ((ends.cumsum(0) - ends + place) * (place < ends)).reshape(-1))
            if longest
            else targets
        )
        return rows.reshape(batch, longest).to(int64).masked_fill(place >= ends, blank)
    if targets.spec.ndim != 2 or targets.spec.shape[0] != batch or targets.spec.shape[1] < longest:
        raise RuntimeError(
            f"Expected targets of shape [{batch}, at least {longest}], got {list(targets.spec.shape)}"
        )
    return targets[:, :longest].to(int64).masked_fill(place >= ends, blank)
