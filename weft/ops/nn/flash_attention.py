"""Attention in blocks of queries: no matrix of all queries times all keys is ever in memory, forward or backward.

Nothing but the arguments and the result is saved for backward: blocks of weights are computed again. Source: Dao et al. 2022,
"FlashAttention", here with whole rows of keys, so that an ordinary softmax gives the weights.

Shapes: query [N, ..., L, E], key [N, ..., S, E], value [N, ..., S, Ev]; mask broadcasts to [N, ..., L, S].
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core import view_rules
from ...core.device import device
from ...core.dtype import DType, bool_
from ...core.plans import PlanCache
from ...core.recording import needs_recording
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...engine import scalar as s
from ...families.custom_vjp import custom_vjp
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import Map, same_dtype
from ..creation.creation import empty, ones, zeros_like
from ..creation.ranges import arange
from ..elementwise.arithmetic import ADD, MUL
from ..linalg.matmul import MATMUL
from ..reductions.reduction import AMAX, SUM
from ..reductions.softmax import SUM_PRODUCTS, softmax

# weights that are computed at a time, so that they stay in the cache
BLOCK_ELEMENTS = 1 << 18
# Queries and keys: the numbers of so many are kept.
_SHORT = 1024


class _Block(NamedTuple):
    """A part of an attention: the last of `samples` may be a slice, as many queries as fit, keys 0 to `keys`."""

    samples: tuple[int | slice, ...]
    queries: slice
    keys: int

    @property
    def first(self) -> int:
        """Return the first of the queries."""
        return self.queries.start

    def of_inputs(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Any, ...]:
        if mask is not None:
            mask = self.of_queries(mask.expand(*query.shape[:-1], key.shape[-2]))
        return self.of_queries(query), self.of_keys(key), self.of_keys(value), mask

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


def _samples(batch: Sequence[int], each: int, most: int) -> Iterator[tuple[int | slice, ...]]:
    """Return the batch in parts of up to `most` weights, or of one sample; () for all of it."""
    if math.prod(batch) * each <= most or not batch:
        yield ()
        return
    count, *inner = batch
    at_once = most // max(math.prod(inner) * each, 1)
    if at_once > 0:
        yield from ((slice(first, min(first + at_once, count)),) for first in range(0, count, at_once))
    else:
        yield from ((sample, *rest) for sample in range(count) for rest in _samples(inner, each, most))


# ---- One block -------------------------------------------------------------------------------------------------------
# Weights are exp(score - maximum of the row) / total of the row. The results are divided instead of the weights, because
# they have fewer elements. A query that sees no keys has a total of 0, and gets zeros.

_UNSEEN = Map(
    "attention_unseen", same_dtype, lambda score, key, last: s.where(last < key, -math.inf, score), deciding=1
)
_MASKED = Map(
    "attention_masked", same_dtype, lambda score, seen: s.where(s.eq(seen, 0), -math.inf, score), deciding=1
)
_POWER = Map(
    "attention_power",
    same_dtype,
    lambda score, highest: s.where(s.eq(highest, -math.inf), 0, s.exp(score - highest)),
)
_SHARE = Map("attention_share", same_dtype, lambda sum, total: s.where(s.eq(total, 0), 0, sum / total))
_SCORE_COTANGENT = Map(
    "attention_backward",
    same_dtype,
    lambda ct, power, total, shared, scale: s.where(s.eq(total, 0), 0, power / total * (ct - shared) * scale),
)


@PlanCache
def _positions(queries: int, keys: int, dtype: DType, where: device) -> tuple[Tensor, Tensor]:
    """The numbers of keys and of queries, so that they broadcast to scores."""
    options: dict[str, Any] = {"dtype": dtype, "device": where}
    return arange(keys, **options), arange(queries, **options).unsqueeze(-1)


def _numbered(graph: GraphBuilder, scores: Spec) -> list[Value]:
    """The numbers of the keys and of the queries of scores. Those of short ones are parts of the same constants."""
    queries, keys = scores.shape[-2:]
    if queries > _SHORT or keys > _SHORT:
        return [graph.constant(each) for each in _positions[queries, keys, scores.dtype, scores.device]]
    of_keys, of_queries = map(graph.constant, _positions[_SHORT, _SHORT, scores.dtype, scores.device])
    return [
        graph.view(view_rules.slice, of_keys, 0, 0, keys, 1),
        graph.view(view_rules.slice, of_queries, 0, 0, queries, 1),
    ]


def _build_powers(
    graph: GraphBuilder, query: Value, key: Value, mask: Value | None, first: int | None
) -> tuple[Value, Value]:
    """Return the weights of a block before their division by the second result: the total of each row.

    first: of the queries, if they see no later keys.
    """
    (scale,) = graph.numbers
    turned = graph.view(view_rules.transpose, key, -2, -1)
    scores = graph.matmul(MATMUL, graph.map(MUL, query, scale), turned)
    if first is not None and first < scores.spec.shape[-1]:  # all keys before are seen by all queries
        last = graph.view(view_rules.slice, scores, -1, first, None, 1)
        graph.write(_UNSEEN, last, last, *_numbered(graph, last.spec))
    elif mask is not None:
        graph.write(_MASKED if mask.spec.dtype is bool_ else ADD, scores, scores, mask)
    dims = (len(scores.spec.shape) - 1,)
    (highest,) = graph.reduce(AMAX, scores, dims=dims)
    graph.write(_POWER, scores, scores, highest)
    (total,) = graph.reduce(SUM, scores, dims=dims)
    return scores, total


def _build(graph: GraphBuilder, first: int | None) -> list[Value]:
    query, key, value, mask = graph.inputs
    powers, total = _build_powers(graph, query, key, mask, first)
    result = graph.matmul(MATMUL, powers, value)
    graph.write(_SHARE, result, result, total)
    return [result]


def _build_backward(graph: GraphBuilder, first: int | None, wanted: tuple[bool, bool, bool]) -> list[Value]:
    """The cotangents of (query, key, value) that are wanted."""
    ct, out, query, key, value, mask = graph.inputs
    powers, total = _build_powers(graph, query, key, mask, first)
    (shared,) = graph.reduce(SUM_PRODUCTS, ct, out, dims=(len(ct.spec.shape) - 1,))
    found = []
    if wanted[0] or wanted[1]:
        pulled = graph.matmul(MATMUL, ct, graph.view(view_rules.transpose, value, -2, -1))
        graph.write(_SCORE_COTANGENT, pulled, pulled, powers, total, shared, graph.numbers[0])
        if wanted[0]:
            found.append(graph.matmul(MATMUL, pulled, key))
        if wanted[1]:
            found.append(graph.matmul(MATMUL, graph.view(view_rules.transpose, pulled, -2, -1), query))
    if wanted[2]:
        turned = graph.view(view_rules.transpose, powers, -2, -1)
        found.append(graph.matmul(MATMUL, turned, graph.map(_SHARE, ct, total)))
    return found


_BLOCK = KernelGraph("attention", 4, _build, numbers=(float,))
_BLOCK_BACKWARD = KernelGraph("attention_backward", 6, _build_backward, numbers=(float,))


# ---- All of it -------------------------------------------------------------------------------------------------------


@PlanCache
def _blocks(query: Spec, key: Spec, causal: bool, most: int) -> list[_Block]:
    return list(_all_blocks(query, key, causal, most))


def _block_elements(query: Spec) -> int:
    """Without memory, one block is enough, because there is nothing to keep in the caches."""
    backend = query.device.backend
    return BLOCK_ELEMENTS * backend.block_scale if backend.has_memory else sys.maxsize


def _is_one_block(query: Spec, key: Spec, causal: bool) -> bool:
    """Whether one block has all queries and all keys."""
    length, keys = query.shape[-2], key.shape[-2]
    weights = math.prod(query.shape[:-1]) * keys
    return 0 < length and (not causal or length >= keys) and weights <= _block_elements(query)


def _rule(ct, out, query, key, value, mask, causal, scale, *, wanted):
    if needs_recording((ct, query, key, value)):
        return recorded_rule(ct, query, key, value, mask, causal, scale)
    wanted = wanted[:3]
    if _is_one_block(query.spec, key.spec, causal):
        return _pulled(0, (ct, out, query, key, value, mask), causal, scale, wanted)
    found = [zeros_like(each) if own else None for each, own in zip((query, key, value), wanted, strict=True)]
    for block in _blocks[query.spec, key.spec, causal, _block_elements(query.spec)]:
        given = block.of_queries(ct), block.of_queries(out), *block.of_inputs(query, key, value, mask)
        of_query, *of_keys = _pulled(block.first, given, causal, scale, wanted)
        if of_query is not None:
            block.of_queries(found[0]).copy_(of_query)
        for total, each in zip(found[1:], of_keys, strict=True):
            if each is not None:
                block.of_keys(total).add_(each)
    return found


def _pulled(first: int, given, causal: bool, scale: float, wanted) -> list[Tensor | None]:
    """What a block, whose first query is `first`, contributes to the cotangents of (query, key, value)."""
    found = _BLOCK_BACKWARD(given, (first if causal else None, wanted), (scale,))
    each = iter(found if type(found) is tuple else (found,))
    return [next(each) if own else None for own in wanted]


def all_weights(query: Tensor, key: Tensor, mask: Any, causal: bool, scale: float) -> Tensor:
    """All weights at once, in steps that can be differentiated."""
    scores = (query * scale).matmul(key.transpose(-2, -1))
    if causal:
        later = ones(query.size(-2), key.size(-2), dtype=bool_, device=query.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    elif mask is not None and mask.spec.dtype is bool_:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask.to(scores.spec.dtype)
    weights = softmax(scores, -1)
    if mask is not None:
        # A query that sees nothing gets zeros rather than NaN.
        weights = weights.masked_fill((scores == -math.inf).all(-1, keepdim=True), 0)
    return weights


def recorded_rule(ct, query, key, value, mask, causal, scale):
    """The same in steps that can be differentiated."""
    weights = all_weights(query, key, mask, causal, scale)
    pulled = ct.matmul(value.transpose(-2, -1))
    pulled = weights * (pulled - (pulled * weights).sum(-1, keepdim=True)) * scale
    return (pulled.matmul(key), pulled.transpose(-2, -1).matmul(query), weights.transpose(-2, -1).matmul(ct))


@custom_vjp(joint=_rule, node_name="ScaledDotProductFlashAttentionForCpuBackward0")
def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scale: float
) -> Tensor:
    """softmax(query @ key^T * scale + mask) @ value; a query that sees nothing gets zeros."""
    if _is_one_block(query.spec, key.spec, causal):
        return _BLOCK((query, key, value, mask), (0 if causal else None,), (scale,))
    result = empty(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for block in _blocks[query.spec, key.spec, causal, _block_elements(query.spec)]:
        given = block.of_inputs(query, key, value, mask)
        block.of_queries(result).copy_(_BLOCK(given, (block.first if causal else None,), (scale,)))
    return result
