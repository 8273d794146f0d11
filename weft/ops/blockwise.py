"""Attention in blocks of queries: no matrix of all queries times all keys is ever in memory, forward or backward.

Nothing but the arguments and the result is saved for backward: blocks of weights are computed again. Source: Dao et al. 2022,
"FlashAttention", here with whole rows of keys, so that weights are those of an ordinary softmax.

Shapes: query [N, ..., L, E], key [N, ..., S, E], value [N, ..., S, Ev]; mask broadcasts to [N, ..., L, S].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..core.dtype import bool_
from ..core.op import needs_recording
from ..core.tensor import Tensor
from ..families.map import Map, keep
from ..families.step import step
from .creation import empty, zeros_like
from .ranges import arange
from .reduction import softmax

# So many weights at a time: they stay in the cache.
BLOCK_ELEMENTS = 1 << 18

_SCORE_COTANGENT = Map(
    "attention_backward", keep, lambda ct, weight, shared, scale: weight * (ct - shared) * scale
)


def _blocks(query: Tensor, key: Tensor, causal: bool) -> Iterator[tuple[slice, slice, slice]]:
    """(samples, queries, keys) of each block; a causal block needs no keys after its last query."""
    samples, length, keys = query.shape[0], query.shape[-2], key.shape[-2]
    each = math.prod(query.shape[1:-2]) * max(keys, 1)
    rows = max(1, min(length, BLOCK_ELEMENTS // max(each, 1)))
    at_once = max(1, BLOCK_ELEMENTS // max(each * rows, 1)) if rows == length else 1
    for first in range(0, samples, at_once):
        for start in range(0, length, rows):
            stop = min(start + rows, length)
            seen = min(keys, stop) if causal else keys
            yield slice(first, first + at_once), slice(start, stop), slice(0, seen)


def _part(x: Tensor, samples: slice, rows: slice) -> Tensor:
    shape = x.spec.shape
    if samples.stop - samples.start >= shape[0] and rows.stop - rows.start >= shape[-2]:
        return x
    return x[samples].narrow(-2, rows.start, max(min(rows.stop, x.shape[-2]) - rows.start, 0))


def _scores(query: Tensor, key: Tensor, mask: Any, causal: bool, scale: float, block) -> Tensor:
    """The scores of a block, what is masked at -inf."""
    samples, rows, seen = block
    scores = (_part(query, samples, rows) * scale).matmul(_part(key, samples, seen).transpose(-2, -1))
    if causal:
        last = arange(rows.start, rows.stop, device=query.device).unsqueeze(-1)
        scores.masked_fill_(arange(seen.stop, device=query.device) > last, -math.inf)
    elif mask is not None:
        own = mask.expand(*query.shape[:-1], key.shape[-2])[samples].narrow(
            -2, rows.start, rows.stop - rows.start
        )
        scores = scores.masked_fill(~own, -math.inf) if own.dtype is bool_ else scores + own.to(scores.dtype)
    return scores


def _weights(query: Tensor, key: Tensor, mask: Any, causal: bool, scale: float, block) -> Tensor:
    scores = _scores(query, key, mask, causal, scale, block)
    weights = softmax(scores, -1)
    if mask is None:
        return weights
    return weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0)  # a query that sees nothing


def _rule(ct, out, query, key, value, mask, causal, scale, *, wanted):
    if needs_recording((ct, query, key, value)):
        return _whole_rule(ct, query, key, value, mask, causal, scale)
    shared = (ct * out).sum(-1, keepdim=True)
    blocks = list(_blocks(query, key, causal))
    given = ct, shared, query, key, value, mask, causal, scale
    if len(blocks) == 1 and blocks[0][2].stop == key.shape[-2]:
        return _block_rule(*given, blocks[0], wanted)
    found = [zeros_like(each) for each in (query, key, value)]
    for samples, rows, seen in blocks:
        own = _block_rule(*given, (samples, rows, seen), wanted)
        if own[0] is not None:
            _part(found[0], samples, rows).copy_(own[0])
        for total, each in zip(found[1:], own[1:], strict=True):
            if each is not None:
                _part(total, samples, seen).add_(each)
    return found


def _block_rule(ct, shared, query, key, value, mask, causal, scale, block, wanted):
    """What the queries of a block contribute to the cotangents of (query, key, value)."""
    samples, rows, seen = block
    found: list = [None, None, None]
    weights = _weights(query, key, mask, causal, scale, block)
    own = _part(ct, samples, rows)
    if wanted[2]:
        found[2] = weights.transpose(-2, -1).matmul(own)
    if wanted[0] or wanted[1]:
        pulled = own.matmul(_part(value, samples, seen).transpose(-2, -1))
        pulled = _SCORE_COTANGENT(pulled, weights, _part(shared, samples, rows), scale)
        if wanted[0]:
            found[0] = pulled.matmul(_part(key, samples, seen))
        if wanted[1]:
            found[1] = pulled.transpose(-2, -1).matmul(_part(query, samples, rows))
    return found


def _whole_rule(ct, query, key, value, mask, causal, scale):
    """The same in one block, in steps that can be differentiated."""
    whole = slice(0, query.shape[0]), slice(0, query.shape[-2]), slice(0, key.shape[-2])
    weights = _weights(query, key, mask, causal, scale, whole)
    pulled = ct.matmul(value.transpose(-2, -1))
    pulled = weights * (pulled - (pulled * weights).sum(-1, keepdim=True)) * scale
    return (
        pulled.matmul(key),
        pulled.transpose(-2, -1).matmul(query),
        weights.transpose(-2, -1).matmul(ct),
    )


@step(joint=_rule)
def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value; a query that sees nothing gets zeros."""
    blocks = list(_blocks(query, key, causal))
    if len(blocks) == 1:
        return _attended(query, key, value, mask, causal, scale, blocks[0])
    result = empty(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for block in blocks:
        _part(result, *block[:2]).copy_(_attended(query, key, value, mask, causal, scale, block))
    return result


def _attended(query, key, value, mask, causal, scale, block) -> Tensor:
    samples, _, seen = block
    return _weights(query, key, mask, causal, scale, block).matmul(_part(value, samples, seen))


attend.node_name = "ScaledDotProductFlashAttentionForCpuBackward0"
