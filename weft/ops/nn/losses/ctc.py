"""Computes the loss of a labelling over all its alignments with the input: connectionist temporal classification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.arguments import integers
from ....core.checking import sizes
from ....core.derivative import differentiate
from ....core.dtype import LEGACY_NAMES, int32, int64
from ....core.public import public
from ....core.spec import Spec, contiguous_spec
from ....core.tensor import Tensor
from ....families.array_op import array, array_op, here, on_device, tensor_of, wide_array
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
    scores = wide_array(log_probs)
    steps, batch, classes = scores.shape
    labels = _padded_labels(targets, input_lengths, target_lengths, steps, batch, classes, blank)
    outside = labels[(labels < 0) | (labels >= classes)]
    if outside.size:
        raise IndexError(f"ctc_loss: target {outside[0]} is out of bounds, there are {classes} classes")
    states, skips, beyond = _alignment_states(labels, target_lengths, blank)
    emitted = _emitted(scores, states, beyond)
    start = np.full_like(emitted, -np.inf)
    start[:1, :, :2] = 0
    paths = _paths(emitted, start, _penalties(skips, scores.dtype))
    alpha = np.moveaxis(paths[1:, :, 2:], 0, 1)
    losses = _final_losses(alpha, np.array(input_lengths, np.int64), np.array(target_lengths, np.int64))
    return tensor_of(losses), tensor_of(alpha)


@alignment_losses.spec_rule
def _alignment_specs(
    log_probs: Spec, targets: Spec, inputs: tuple, lengths: tuple, blank: int, zero_infinity: bool
) -> tuple[Spec, Spec]:
    steps, batch, _ = log_probs.shape
    states = 2 * max(lengths, default=0) + 1
    return contiguous_spec((batch,), log_probs.dtype), contiguous_spec(
        (batch, steps, states), log_probs.dtype
    )


def _penalties(allowed: np.ndarray, dtype: Any) -> np.ndarray:
    """0 where something is allowed, else -inf."""
    return np.where(allowed, 0, -np.inf).astype(dtype)


def _emitted(scores: np.ndarray, states: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """The scores of the classes of the states [T, N, 2 S + 1]; -inf for states that are past the end."""
    found = scores.reshape(-1).take(_places(scores, states))
    return np.where(beyond, scores.dtype.type(-np.inf), found)


def _places(scores: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Where the classes of the states stand among all scores, at each step [T, N, 2 S + 1]."""
    steps, batch, classes = scores.shape
    return np.arange(steps * batch).reshape(steps, batch, 1) * classes + states


def _paths(emitted: np.ndarray, start: np.ndarray, skips: np.ndarray) -> np.ndarray:
    """Return logarithms [1 + T, N, 2 + 2 S + 1] of the probabilities of all ways to a state; -inf in the first step.

    A way begins with the probability `start`. It stays in its state, or goes on by one state, or by two where `skips` is 0.
    """
    steps, batch, states = emitted.shape
    paths = np.full((1 + steps, batch, 2 + states), -np.inf, emitted.dtype)
    run = here().backend.extras.get("alignments")
    if run is not None and emitted.size:
        run(paths, emitted, start, skips)
        return paths
    with np.errstate(all="ignore"):
        for before, after, first, score in zip(paths, paths[1:], start, emitted, strict=False):
            stayed = np.logaddexp(before[:, 2:], before[:, 1:-1])
            after[:, 2:] = np.maximum(np.logaddexp(stayed, before[:, :-2] + skips), first) + score
    return paths


def _final_losses(alpha: np.ndarray, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Minus the logarithm of the probability of each sequence: that it ends in its last label or in the blank behind it."""
    batch, steps, _ = alpha.shape
    if not steps:
        return np.where(labels == 0, -0.0, np.inf).astype(alpha.dtype)
    rows, last = np.arange(batch), np.maximum(inputs - 1, 0)
    blank = alpha[rows, last, 2 * labels]
    label = np.where(labels > 0, alpha[rows, last, np.maximum(2 * labels - 1, 0)], -np.inf)
    found = -np.logaddexp(blank, label)
    return np.where(inputs > 0, found, np.where(labels == 0, -0.0, np.inf)).astype(alpha.dtype)


def _alignment_states(labels: np.ndarray, lengths: tuple, blank: int) -> tuple[np.ndarray, ...]:
    """[N, 2 S + 1] each: the class of a state, whether it may follow the one two before it, whether it is past the end."""
    # A blank stands between, before and behind all labels.
    states = np.full((len(labels), 2 * labels.shape[1] + 1), blank)
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
    zero_infinity: bool,
) -> Tensor:
    """The cotangent of log_probs, taken to be a log_softmax, as PyTorch takes it. Source: Graves et al. 2006, eq. 16."""
    scores, forward, loss = wide_array(log_probs), array(alpha), array(losses)
    steps, batch, classes = scores.shape
    labels = _padded_labels(targets, inputs, lengths, steps, batch, classes, blank)
    states, skips, beyond = _alignment_states(labels, lengths, blank)
    emitted = _emitted(scores, states, beyond)
    last, ends = np.array(inputs, np.int64) - 1, np.array(lengths, np.int64)
    ended = np.arange(steps)[:, None] > last
    emitted[ended] = -np.inf
    # The ways from a state to the end are the ways to it if steps and states are counted from the end.
    start = np.full_like(emitted, -np.inf)
    reached = np.flatnonzero(last >= 0)
    start[last[reached], reached, 2 * ends[reached]] = 0
    reached = reached[ends[reached] > 0]
    start[last[reached], reached, 2 * ends[reached] - 1] = 0
    allowed = np.zeros(states.shape, bool)
    allowed[:, 2:] = skips[:, :1:-1]
    score, first = (np.ascontiguousarray(each[::-1, :, ::-1]) for each in (emitted, start))
    beta = _paths(score, first, _penalties(allowed, scores.dtype))[:0:-1, :, :1:-1]
    with np.errstate(all="ignore"):
        together = np.moveaxis(forward, 1, 0) + beta - emitted + loss[:, None]
        likely = np.nan_to_num(np.exp(together), nan=0.0)
        # The probability of each class at each step, summed over the states of the class.
        places = _places(scores, states).reshape(-1)
        occupied = np.bincount(places, likely.reshape(-1), scores.size).reshape(scores.shape)
        found = (np.exp(scores) - occupied) * array(ct)[None, :, None]
    found[scores == -np.inf] = np.nan  # as in PyTorch, for classes without a label, too
    found[:, loss == np.inf] = 0 if zero_infinity else np.nan
    found[ended] = 0
    return tensor_of(found.astype(scores.dtype))


@_ctc_loss_backward.spec_rule
def _ctc_loss_backward_spec(ct: Spec, losses: Spec, alpha: Spec, log_probs: Spec, *others: Any) -> Spec:
    return contiguous_spec(log_probs.shape, log_probs.dtype)


def _alignment_rule(cts, outs, log_probs, targets, *static):
    return (_ctc_loss_backward(cts[0], *outs, log_probs, targets, *static),)


differentiate(alignment_losses, joint=_alignment_rule)


def _padded_labels(
    targets: Tensor, input_lengths, target_lengths, steps: int, batch: int, classes: int, blank: int
):
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
