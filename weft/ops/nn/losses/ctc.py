"""Connectionist temporal classification: the loss of a labelling, over all its alignments with the input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.arguments import integers
from ....core.checking import sizes
from ....core.derivative import differentiate
from ....core.dtype import LEGACY_NAMES, int32, int64
from ....core.public import public
from ....core.tensor import Tensor
from ....families.array_op import array, array_op, on_device, tensor_of, wide_array
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
    batched = log_probs.spec.ndim == 3
    inputs, lengths = _lengths(input_lengths), _lengths(target_lengths)
    losses, _ = alignment_losses(
        log_probs if batched else log_probs.unsqueeze(1), targets, inputs, lengths, blank
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
    return tuple(given.reshape(-1).tolist())


@array_op(node_name="CtcLossBackward0")
def alignment_losses(
    log_probs: Tensor, targets: Tensor, input_lengths: tuple, target_lengths: tuple, blank: int
) -> tuple[Tensor, Tensor]:
    """The loss of each sequence, and the forward variables [N, T, 2 S + 1] that its derivative needs."""
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
    scores = wide_array(log_probs)
    steps, batch, classes = scores.shape
    labels = _padded_labels(targets, input_lengths, target_lengths, steps, batch, classes, blank)
    outside = labels[(labels < 0) | (labels >= classes)]
    if outside.size:
        raise IndexError(f"ctc_loss: target {outside[0]} is out of bounds, there are {classes} classes")
    states, skips, beyond = _alignment_states(labels, target_lengths, blank)
    rows = np.arange(batch)[:, None]
    alpha = np.full((batch, steps, states.shape[1]), -np.inf, scores.dtype)
    if steps:
        alpha[:, 0, :2] = scores[0][rows, states[:, :2]]
        alpha[:, 0][beyond] = -np.inf
    with np.errstate(all="ignore"):
        for t in range(1, steps):
            before = alpha[:, t - 1]
            total = before.copy()
            total[:, 1:] = np.logaddexp(total[:, 1:], before[:, :-1])
            total[:, 2:] = np.where(skips[:, 2:], np.logaddexp(total[:, 2:], before[:, :-2]), total[:, 2:])
            alpha[:, t] = np.where(beyond, -np.inf, total + scores[t][rows, states])
        losses = np.array(
            [_final_loss(alpha[b], input_lengths[b], target_lengths[b]) for b in range(batch)], scores.dtype
        )
    return tensor_of(losses), tensor_of(alpha)


def _alignment_states(labels: np.ndarray, lengths: tuple, blank: int) -> tuple[np.ndarray, ...]:
    """[N, 2 S + 1] each: the class of a state, whether it may follow the one two before it, whether it is past the end."""
    states = np.full(
        (len(labels), 2 * labels.shape[1] + 1), blank
    )  # a blank between, before and behind all labels
    states[:, 1::2] = labels
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    return states, skips, np.arange(states.shape[1]) > 2 * np.array(lengths, np.int64)[:, None]


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
) -> Tensor:
    """The cotangent of log_probs, taken to be a log_softmax, as PyTorch takes it. Source: Graves et al. 2006, eq. 16."""
    scores, forward, loss = wide_array(log_probs), array(alpha), array(losses)
    steps, batch, classes = scores.shape
    labels = _padded_labels(targets, inputs, lengths, steps, batch, classes, blank)
    states, skips, beyond = _alignment_states(labels, lengths, blank)
    rows = np.arange(batch)[:, None]
    occupied = np.zeros_like(scores)  # how likely each class is at each step, of all alignments
    after = np.full(states.shape, -np.inf, scores.dtype)
    last = np.array(inputs) - 1
    ends = np.array(lengths)
    with np.errstate(all="ignore"):
        for t in range(steps - 1, -1, -1):
            total = after.copy()
            total[:, :-1] = np.logaddexp(total[:, :-1], after[:, 1:])
            total[:, :-2] = np.where(skips[:, 2:], np.logaddexp(total[:, :-2], after[:, 2:]), total[:, :-2])
            first = np.full(states.shape, -np.inf, scores.dtype)
            first[np.arange(batch), 2 * ends] = 0
            some = ends > 0
            first[np.arange(batch)[some], 2 * ends[some] - 1] = 0
            total = np.where((last == t)[:, None], first, total)
            emitted = scores[t][rows, states]
            after = np.where(beyond | (last < t)[:, None], -np.inf, total + emitted)
            together = forward[:, t] + after - emitted + loss[:, None]
            np.add.at(occupied[t], (rows, states), np.nan_to_num(np.exp(together), nan=0.0))
        found = (np.exp(scores) - occupied) * array(ct)[None, :, None]
    found[np.arange(steps)[:, None] > last] = 0
    return tensor_of(found.astype(scores.dtype))


def _alignment_rule(cts, outs, log_probs, targets, inputs, lengths, blank):
    return (_ctc_loss_backward(cts[0], *outs, log_probs, targets, inputs, lengths, blank),)


differentiate(alignment_losses, joint=_alignment_rule)


def _final_loss(alpha: np.ndarray, steps: int, labels: int) -> Any:
    if steps == 0:
        return 0.0 if labels == 0 else np.inf
    last = alpha[steps - 1]
    return -(np.logaddexp(last[2 * labels], last[2 * labels - 1]) if labels else last[0])


def _padded_labels(
    targets: Tensor, input_lengths, target_lengths, steps: int, batch: int, classes: int, blank: int
):
    """The target sequences as rows [N, S]."""
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
    values = array(targets)
    longest = max(target_lengths, default=0)
    if values.ndim == 1:
        if values.size != sum(target_lengths):
            raise RuntimeError(
                f"Expected targets of {sum(target_lengths)} labels (the sum of target_lengths), got {values.size}"
            )
        found = np.full((batch, longest), blank, np.int64)
        starts = np.cumsum((0, *target_lengths))
        for row, (start, length) in enumerate(zip(starts, target_lengths, strict=False)):
            found[row, :length] = values[start : start + length]
        return found
    if values.ndim != 2 or values.shape[0] != batch or values.shape[1] < longest:
        raise RuntimeError(
            f"Expected targets of shape [{batch}, at least {longest}], got {list(values.shape)}"
        )
    inside = np.arange(longest) < np.array(target_lengths, np.int64)[:, None]
    return np.where(inside, values[:, :longest], blank)
