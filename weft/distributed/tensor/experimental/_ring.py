"""Attention of a sequence whose parts lie on several processes: keys and values go around the ring of processes, queries stay.

Each process attends to one part of the keys at a time. It merges the results by the logarithms of the sums of the exponentials of scores. The
next part arrives meanwhile. In the backward pass the gradients of keys and values go around with them.

Source: Liu, Zaharia, Abbeel 2023, "Ring attention with blockwise transformers for near-infinite context".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ....autograd.function import Function, once_differentiable
from ....core.dtype import bool_, compute_type
from ....core.tensor import Tensor
from ....ops.creation.creation import ones
from ....ops.creation.from_data import tensor
from ... import _collectives, _point_to_point

# Scores that are in memory at a time, for each head and sample: those of 512 queries and 2048 keys.
_SCORES = 1 << 20


class Share(NamedTuple):
    """Which queries of a process attend to which keys of another one; `is_causal`: to none that come later."""

    queries: slice
    keys: slice
    is_causal: bool


def share_of(rank: int, source: int, is_causal: bool, is_balanced: bool, keys: int) -> Share | None:
    """What process `rank` computes with the `keys` keys of process `source`; None for nothing.

    In order, a process has one piece of the sequence. Balanced, it has a piece from the front and its counterpart from the end, so that all processes have as
    much to do.

    >>> share_of(1, 2, True, False, 8) is None, share_of(1, 2, True, True, 8)
    (True, Share(queries=slice(4, None, None), keys=slice(None, None, None), is_causal=False))
    """
    everything, half = slice(None), keys // 2
    if not is_causal or rank == source:
        return Share(everything, everything, is_causal)
    if source < rank:
        return Share(everything, slice(None, half) if is_balanced else everything, False)
    return Share(slice(half, None), everything, False) if is_balanced else None


class _Ring:
    """The processes that have parts of a sequence."""

    def __init__(self, group: Any, lengths: Sequence[int]):
        self.group, self.lengths = group, lengths  # of the parts of keys
        self.rank, self.size = group.rank(), group.size()

    def parts(self, own: Sequence[Tensor]) -> Iterator[tuple[int, list[Tensor]]]:
        """The parts of all processes, with the number of each, beginning with the own one. While a part is used the next one arrives."""
        current, source = [each.contiguous() for each in own], self.rank
        for _ in range(self.size - 1):
            before = (source - 1) % self.size
            coming, works = self.begin(current, before)
            yield source, current
            for work in works:
                work.wait()
            current, source = coming, before
        yield source, current

    def begin(self, given: Sequence[Tensor], source: int) -> tuple[list[Tensor], list[Any]]:
        """Begin to send tensors to the next process, and to take those of part `source` from the one before."""
        coming = [_with_keys(each, self.lengths[source]) for each in given]
        works: list[Any] = []
        for sent, taken in zip(given, coming, strict=True):
            works.append(_point_to_point.isend(sent, group=self.group, group_dst=(self.rank + 1) % self.size))
            works.append(
                _point_to_point.irecv(taken, group=self.group, group_src=(self.rank - 1) % self.size)
            )
        return coming, works


def _with_keys(like: Tensor, count: int) -> Tensor:
    return like.new_empty((*like.spec.shape[:-2], count, like.spec.shape[-1]))


def _rows_at_a_time(queries: Tensor, keys: Tensor) -> Iterator[slice]:
    """Slices of queries, of which the scores are in memory together."""
    count, step = queries.spec.shape[-2], max(_SCORES // max(keys.spec.shape[-2], 1), 1)
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))


def _scores(query: Tensor, key: Tensor, rows: slice, is_causal: bool, scale: float) -> Tensor:
    found = (query[..., rows, :] * scale) @ key.mT
    if is_causal:
        later = ones(found.spec.shape[-2:], dtype=bool_).triu(rows.start + 1)
        found.masked_fill_(later, -math.inf)
    return found


def _merge(
    out: Tensor, total: Tensor, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
) -> None:
    """Attend to more keys: `total` has the logarithms of the sums of the exponentials of the scores so far, -inf for none."""
    for rows in _rows_at_a_time(query, key):
        scores = _scores(query, key, rows, is_causal, scale)
        own = scores.logsumexp(-1, keepdim=True)
        both = total[..., rows, :].logaddexp(own)
        old = (total[..., rows, :] - both).exp()
        out[..., rows, :] = out[..., rows, :] * old + (scores - both).exp() @ value
        total[..., rows, :] = both


def _add_gradients(
    given: tuple[Tensor, Tensor, Tensor],
    found: tuple[Tensor, Tensor, Tensor],
    of_rows: tuple[Tensor, Tensor, Tensor],
    is_causal: bool,
    scale: float,
) -> None:
    """Add to the gradients of query, key and value what these keys give. of_rows: the gradient of the result, `total`, and their products with the result."""
    query, key, value = given
    of_query, of_key, of_value = found
    for rows in _rows_at_a_time(query, key):
        ct, total, products = (each[..., rows, :] for each in of_rows)
        weights = (_scores(query, key, rows, is_causal, scale) - total).exp()
        of_value += weights.mT @ ct
        of_scores = weights * (ct @ value.mT - products) * scale
        of_query[..., rows, :] += of_scores @ key
        of_key += of_scores.mT @ query[..., rows, :]


class _RingAttention(Function):
    """query, key, value: [N, heads, length of the part, features]."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        ring: _Ring,
        is_causal: bool,
        is_balanced: bool,
        scale: float,
    ) -> Tensor:
        ctx.ring, ctx.is_causal, ctx.is_balanced, ctx.scale = ring, is_causal, is_balanced, scale
        wide = compute_type(query.dtype)
        q = query.to(wide)
        out = q.new_zeros((*query.spec.shape[:-1], value.spec.shape[-1]))
        total = q.new_full((*query.spec.shape[:-1], 1), -math.inf)
        for source, (k, v) in ring.parts((key, value)):
            share = share_of(ring.rank, source, is_causal, is_balanced, k.spec.shape[-2])
            if share is not None:
                own = share.queries
                k, v = k[..., share.keys, :].to(wide), v[..., share.keys, :].to(wide)
                _merge(out[..., own, :], total[..., own, :], q[..., own, :], k, v, share.is_causal, scale)
        ctx.save_for_backward(query, key, value, out, total)
        return out.to(query.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ct: Tensor) -> Any:
        query, key, value, out, total = ctx.saved_tensors
        ring, scale = ctx.ring, ctx.scale
        q, ct = query.to(out.dtype), ct.to(out.dtype)
        of_query, products = q.new_zeros(q.spec.shape), (ct * out).sum(-1, keepdim=True)
        gradients = [each.new_zeros(each.spec.shape, dtype=out.dtype) for each in (key, value)]
        works: list[Any] = []
        for source, (k, v) in ring.parts((key, value)):
            share = share_of(ring.rank, source, ctx.is_causal, ctx.is_balanced, k.spec.shape[-2])
            for work in works:
                work.wait()
            if share is not None:
                own, keys = share.queries, share.keys
                given = q[..., own, :], k[..., keys, :].to(out.dtype), v[..., keys, :].to(out.dtype)
                found = of_query[..., own, :], gradients[0][..., keys, :], gradients[1][..., keys, :]
                of_rows = ct[..., own, :], total[..., own, :], products[..., own, :]
                _add_gradients(given, found, of_rows, share.is_causal, scale)
            gradients, works = (
                ring.begin(gradients, (source - 1) % ring.size) if ring.size > 1 else (gradients, [])
            )
        for work in works:
            work.wait()
        of_key, of_value = gradients
        return (
            of_query.to(query.dtype),
            of_key.to(key.dtype),
            of_value.to(value.dtype),
            None,
            None,
            None,
            None,
        )


def ring_attention(
    group: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool,
    is_balanced: bool,
    scale: float | None,
    shared: bool,
) -> Tensor:
    """The attention of the queries of this process to the keys of all. shared: several heads of queries may share one of keys."""
    if is_causal and query.spec.shape[-2] != key.spec.shape[-2]:
        raise NotImplementedError(
            "is_causal requires the same query and context sequence lengths: this process has "
            f"{query.spec.shape[-2]} queries and {key.spec.shape[-2]} keys"
        )
    if shared:
        heads = query.spec.shape[-3]
        key, value = (each.repeat_interleave(heads // each.spec.shape[-3], -3) for each in (key, value))
    lengths = [tensor(0) for _ in range(group.size())]
    _collectives.all_gather(lengths, tensor(key.spec.shape[-2]), group=group)
    ring = _Ring(group, [int(each.item()) for each in lengths])
    return _RingAttention.apply(
        query, key, value, ring, is_causal, is_balanced, scale or query.spec.shape[-1] ** -0.5
    )
