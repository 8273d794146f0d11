"""Attention in blocks of queries: no matrix of all queries times all keys is ever in memory, forward or backward.

Nothing but the arguments and the result is saved for backward: blocks of weights are computed again. Source: Dao et al. 2022,
"FlashAttention", here with whole rows of keys, so that weights are those of an ordinary softmax.

Shapes: query [N, ..., L, E], key [N, ..., S, E], value [N, ..., S, Ev]; mask broadcasts to [N, ..., L, S].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..core.dtype import bool_
from ..core.op import PlanCache, needs_recording
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine import scalar as s
from ..families.map import Map, keep
from ..families.step import step
from .creation import empty, zeros_like
from .ranges import arange
from .reduction import softmax

# So many weights at a time: they stay in the cache.
BLOCK_ELEMENTS = 1 << 18

# Scores of keys after the last one that a query sees become -inf.
_UNSEEN = Map(
    "attention_unseen",
    keep,
    lambda score, key, last: s.where(last < key, -math.inf, score),
    deciding=1,
    derivative=(lambda ct, out, score, key, last: ct.masked_fill(out == -math.inf, 0), None, None),
)


def _count(scores: Spec) -> tuple[Tensor, Tensor]:
    """The numbers of keys and of queries, so that they broadcast to scores."""
    queries, keys = (arange(size, device=scores.device) for size in scores.shape[-2:])
    return keys, queries.unsqueeze(-1)


_positions = PlanCache(_count)
_SCORE_COTANGENT = Map(
    "attention_backward", keep, lambda ct, weight, shared, scale: weight * (ct - shared) * scale
)


class _Block(NamedTuple):
    """A part of an attention: the last of `samples` may be a slice, as many queries as fit, keys 0 to `keys`."""

    samples: tuple[int | slice, ...]
    queries: slice
    keys: int

    def of_queries(self, x: Tensor) -> Tensor:
        return self._part(x, self.queries)

    def of_keys(self, x: Tensor) -> Tensor:
        return self._part(x, slice(0, self.keys))

    def _part(self, x: Tensor, rows: slice) -> Tensor:
        part = x[self.samples] if self.samples else x
        return (
            part
            if rows.stop - rows.start == x.shape[-2]
            else part.narrow(-2, rows.start, rows.stop - rows.start)
        )


def _all_blocks(query: Spec, key: Spec, causal: bool, most: int) -> Iterator[_Block]:
    """All of it, in blocks of up to `most` weights; a causal block needs no keys after its last query."""
    length, keys = query.shape[-2], key.shape[-2]
    rows = max(1, min(length, most // max(keys, 1)))
    for samples in _samples(query.shape[:-2], length * keys, most):
        for start in range(0, length, rows):
            stop = min(start + rows, length)
            yield _Block(samples, slice(start, stop), min(keys, stop) if causal else keys)


_blocks = PlanCache(lambda *key: list(_all_blocks(*key)))


def _samples(batch: Sequence[int], each: int, most: int) -> Iterator[tuple[int | slice, ...]]:
    """The batch in parts of up to `most` weights, or of one sample; () for all of it."""
    if math.prod(batch) * each <= most or not batch:
        yield ()
        return
    count, *inner = batch
    at_once = most // max(math.prod(inner) * each, 1)
    if at_once > 0:
        yield from ((slice(first, min(first + at_once, count)),) for first in range(0, count, at_once))
    else:
        yield from ((sample, *rest) for sample in range(count) for rest in _samples(inner, each, most))


def _scores(query: Tensor, key: Tensor, mask: Any, causal: bool, scale: float, block: _Block) -> Tensor:
    """The scores of a block, what is masked at -inf."""
    scores = (block.of_queries(query) * scale).matmul(block.of_keys(key).transpose(-2, -1))
    if causal:
        first = block.queries.start
        if block.keys > first:
            last = scores.narrow(-1, first, block.keys - first)  # all keys before are seen by all queries
            _UNSEEN.inplace(last, *_positions[(last.spec,)])
    elif mask is not None:
        own = block.of_queries(mask.expand(*query.shape[:-1], key.shape[-2]))
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
    blocks = _blocks[query.spec, key.spec, causal, BLOCK_ELEMENTS]
    given = ct, shared, query, key, value, mask, causal, scale
    if len(blocks) == 1 and blocks[0].keys == key.shape[-2]:
        return _block_rule(*given, blocks[0], wanted)
    found = [zeros_like(each) for each in (query, key, value)]
    for block in blocks:
        own = _block_rule(*given, block, wanted)
        if own[0] is not None:
            block.of_queries(found[0]).copy_(own[0])
        for total, each in zip(found[1:], own[1:], strict=True):
            if each is not None:
                block.of_keys(total).add_(each)
    return found


def _block_rule(ct, shared, query, key, value, mask, causal, scale, block, wanted):
    """What the queries of a block contribute to the cotangents of (query, key, value)."""
    found: list = [None, None, None]
    weights = _weights(query, key, mask, causal, scale, block)
    own = block.of_queries(ct)
    if wanted[2]:
        found[2] = weights.transpose(-2, -1).matmul(own)
    if wanted[0] or wanted[1]:
        pulled = own.matmul(block.of_keys(value).transpose(-2, -1))
        pulled = _SCORE_COTANGENT(pulled, weights, block.of_queries(shared), scale)
        if wanted[0]:
            found[0] = pulled.matmul(block.of_keys(key))
        if wanted[1]:
            found[1] = pulled.transpose(-2, -1).matmul(block.of_queries(query))
    return found


def _whole_rule(ct, query, key, value, mask, causal, scale):
    """The same in one block, in steps that can be differentiated."""
    whole = _Block((), slice(0, query.shape[-2]), key.shape[-2])
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
    blocks = _blocks[query.spec, key.spec, causal, BLOCK_ELEMENTS]
    if len(blocks) == 1:
        return _attended(query, key, value, mask, causal, scale, blocks[0])
    result = empty(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for block in blocks:
        block.of_queries(result).copy_(_attended(query, key, value, mask, causal, scale, block))
    return result


def _attended(query, key, value, mask, causal, scale, block) -> Tensor:
    return _weights(query, key, mask, causal, scale, block).matmul(block.of_keys(value))


attend.node_name = "ScaledDotProductFlashAttentionForCpuBackward0"
