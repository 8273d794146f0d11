"""Attention whose scores and mask are functions: all scores in memory, in steps that autograd records."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core.dtype import float32, float64, get_default_dtype
from ...core.names import FUNCTIONS
from ...core.tensor import Tensor
from ._lanes import over_indices


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None,
    mask_mod: Callable | None,
    scale: float,
    group: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The result, the logarithm of the sum of exponentials and the highest score of each query.

    group: how many heads of queries share one of keys.
    """
    working = float64 if query.dtype is float64 else float32
    scores = _scores(query, key, scale, group).to(working)
    scores = modified(scores, score_mod, mask_mod)
    result, lse, highest = _weighted(scores, value, group)
    return result.to(query.dtype), lse, highest


def _scores(query: Tensor, key: Tensor, scale: float, group: int) -> Tensor:
    if group > 1:
        key = key.repeat_interleave(group, 1)
    return query.matmul(key.transpose(-2, -1)) * scale


def modified(scores: Tensor, score_mod: Callable | None, mask_mod: Callable | None) -> Tensor:
    """The scores after score_mod, and -inf where mask_mod is False."""
    sizes = scores.shape
    indices = [FUNCTIONS["arange"](size, device=scores.device) for size in sizes]
    if score_mod is not None:
        scores = over_indices(score_mod, indices, scores).expand(sizes)
        scores = scores if scores.is_floating_point() else scores.to(get_default_dtype())
    if mask_mod is not None:
        scores = FUNCTIONS["where"](over_indices(mask_mod, indices), scores, -math.inf)
    return scores


def _weighted(scores: Tensor, value: Tensor, group: int) -> tuple[Tensor, Tensor, Tensor]:
    if group > 1:
        value = value.repeat_interleave(group, 1)
    highest = scores.amax(-1, keepdim=True)
    unseen = highest == -math.inf
    powers = (scores - highest.detach().masked_fill(unseen, 0)).exp()
    total = powers.sum(-1, keepdim=True)
    shares = powers / total.masked_fill(unseen, 1)
    lse = (total.log() + highest.detach()).masked_fill(unseen, -math.inf)
    return shares.to(value.dtype).matmul(value), lse.squeeze(-1), highest.squeeze(-1)
