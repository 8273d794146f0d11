"""Attention whose scores and mask are functions.

Few scores are computed at once, in steps that autograd records. Many are computed in tiles: some queries of some heads, and the
keys between the first and the last that they see. Then no matrix of all queries times all keys is ever in memory, and keys
that a tile does not see cost nothing. Backward computes the tiles again, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...autograd.backward import grad as gradients
from ...autograd.tensor import require_grad
from ...core.dtype import float32, float64, get_default_dtype
from ...core.grad_mode import enable_grad, is_grad_enabled
from ...core.recording import needs_recording
from ...core.tensor import Tensor
from ...families.custom_vjp import custom_vjp
from ...ops.creation.creation import full, zeros, zeros_like
from ...ops.creation.ranges import arange
from ...ops.indexing.masking import where
from ._lanes import over_indices

# Scores computed at once. Measured with 8 heads of 2048 queries and keys, 64 features, causal, and a score_mod of four operations:
# 0.61 s with 2**16, 0.47 s with 2**19, 0.25 s with 2**20. Memory is a few times 4 bytes for each.
TILE_ELEMENTS = 1 << 20


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None,
    mask_mod: Callable | None,
    scale: float,
    group: int,
    seen: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result, the logarithm of the sum of exponentials and the highest score of each query.

    group: how many heads of queries share one of keys. seen: for blocks of queries, which keys mask_mod may let through.
    """
    functions = _Functions(score_mod, mask_mod, scale, group, seen)
    is_large = math.prod(query.shape[:-1]) * key.shape[-2] > TILE_ELEMENTS
    if is_large and key.shape[0] == query.shape[0] and not _needs_gradients(score_mod, query):
        return _in_tiles(query, key, value, functions)
    return _at_once(query, key, value, functions)


class _Functions(NamedTuple):
    """What decides the scores; see `attend`."""

    score_mod: Callable | None
    mask_mod: Callable | None
    scale: float
    group: int
    seen: Any


def _at_once(query: Tensor, key: Tensor, value: Tensor, own: _Functions) -> tuple[Tensor, Tensor, Tensor]:
    scores = _scores(query, key, own.scale, own.group)
    scores = modified(scores, own.score_mod, own.mask_mod)
    result, lse, highest = _weighted(scores, value, own.group)
    return result.to(query.dtype), lse, highest


def _needs_gradients(score_mod: Callable | None, query: Tensor) -> bool:
    """Return whether score_mod uses tensors that require grad; found out by one score."""
    if score_mod is None or not is_grad_enabled():
        return False
    score = zeros(1, 1, 1, 1, dtype=float32, device=query.device)
    return over_indices(score_mod, _ranges((range(1),) * 4, query.device), score).requires_grad


def _scores(query: Tensor, key: Tensor, scale: float, group: int) -> Tensor:
    if group > 1:
        key = key.repeat_interleave(group, 1)
    working = float64 if query.dtype is float64 else float32
    return query.matmul(key.transpose(-2, -1)).to(working) * scale


def modified(
    scores: Tensor,
    score_mod: Callable | None,
    mask_mod: Callable | None,
    places: Any = None,
    mask: Any = None,
) -> Tensor:
    """Return the scores after score_mod, and -inf where mask_mod is False.

    places: the ranges of batches, heads, queries and keys that these are the scores of. mask: of mask_mod, if it is known.
    """
    sizes = scores.shape
    indices = _ranges([range(size) for size in sizes] if places is None else places, scores.device)
    if score_mod is not None:
        scores = over_indices(score_mod, indices, scores).expand(sizes)
        scores = scores if scores.is_floating_point() else scores.to(get_default_dtype())
    if mask_mod is not None:
        mask = over_indices(mask_mod, indices) if mask is None else mask
        scores = where(mask, scores, -math.inf)
    return scores


def _ranges(ranges: Any, device: Any) -> list[Tensor]:
    return [arange(each.start, each.stop, device=device) for each in ranges]


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


# ---- Tiles -----------------------------------------------------------------------------------------------------------


class _Tile(NamedTuple):
    """Some queries of some heads of one batch, the keys they see, and the mask between them."""

    batch: int
    heads: range
    queries: range
    keys: range
    mask: Tensor | None

    def of_queries(self, x: Tensor) -> Tensor:
        """Return the part [1, heads, queries, ...] of a tensor [batch, heads, queries, ...]."""
        return x[
            self.batch : self.batch + 1,
            self.heads.start : self.heads.stop,
            self.queries.start : self.queries.stop,
        ]

    def of_keys(self, x: Tensor, group: int) -> Tensor:
        heads = slice(self.heads.start // group, -(-self.heads.stop // group))
        return x[self.batch : self.batch + 1, heads, self.keys.start : self.keys.stop]

    def places(self) -> tuple[range, range, range, range]:
        return range(self.batch, self.batch + 1), self.heads, self.queries, self.keys


def _tiles(query: Tensor, key: Tensor, own: _Functions) -> Iterator[_Tile]:
    """Yield all tiles in which something is seen."""
    (batch, heads, length, _), keys = query.shape, key.shape[2]
    rows = max(1, min(length, TILE_ELEMENTS // max(keys, 1), 256))
    if own.seen is not None:
        block = own.seen.rows
        rows = max(1, rows // block) * block
    is_shared = own.mask_mod is None or _is_shared(own.mask_mod, batch, heads, query.device)
    for start in range(0, length, rows):
        queries = range(start, min(start + rows, length))
        known: tuple[range, Tensor | None] | None = None
        for sample in range(batch):
            width = range(keys) if own.seen is None else own.seen.keys(sample, queries, keys)
            at_once = max(1, TILE_ELEMENTS // max(len(queries) * len(width), 1)) if own.group == 1 else 1
            for first in range(0, heads, at_once):
                chunk = range(first, min(first + at_once, heads))
                if known is None or not is_shared:
                    known = _seen_part(
                        own.mask_mod, (range(sample, sample + 1), chunk, queries, width), query.device
                    )
                if len(known[0]):
                    yield _Tile(sample, chunk, queries, *known)


def _is_shared(mask_mod: Callable, batch: int, heads: int, device: Any) -> bool:
    """Return whether a mask is the same for all batches and heads."""
    found = over_indices(mask_mod, _ranges((range(batch), range(heads), range(1), range(1)), device))
    return found.shape[0] == found.shape[1] == 1


def _seen_part(mask_mod: Callable | None, places: Any, device: Any) -> tuple[range, Tensor | None]:
    """Return the keys from the first to the last that one of the queries sees, and the mask for these."""
    keys = places[3]
    if mask_mod is None or not len(keys):
        return keys, None
    mask = over_indices(mask_mod, _ranges(places, device))
    if mask.shape[3] != len(keys):
        return (keys if mask.any() else range(0)), mask
    found = mask.flatten(0, 2).any(0).nonzero().squeeze(-1)
    if not found.numel():
        return range(0), None
    first, last = int(found[0]), int(found[-1])
    return range(keys.start + first, keys.start + last + 1), mask[..., first : last + 1]


def _tile(
    query: Tensor, key: Tensor, value: Tensor, tile: _Tile, own: _Functions
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `_at_once` for the part of a tile."""
    working = float64 if query.dtype is float64 else float32
    scores = query.matmul(key.transpose(-2, -1)).to(working) * own.scale
    scores = modified(scores, own.score_mod, own.mask_mod, tile.places(), tile.mask)
    result, lse, highest = _weighted(scores, value, 1)
    return result.to(query.dtype), lse, highest


def _parts(
    query: Tensor, key: Tensor, value: Tensor, tile: _Tile, group: int
) -> tuple[Tensor, Tensor, Tensor]:
    return tile.of_queries(query), tile.of_keys(key, group), tile.of_keys(value, group)


def _rule(ct, out, query, key, value, own):
    if needs_recording((*[each for each in ct if each is not None], query, key, value)):
        with enable_grad():
            found = _at_once(query, key, value, own)
            pairs = [(y, each) for y, each in zip(found, ct, strict=True) if each is not None]
            own_grads = gradients(
                [y for y, _ in pairs], (query, key, value), [each for _, each in pairs], create_graph=True
            )
        return (*own_grads, None)
    totals = [zeros_like(each) for each in (query, key, value)]
    for tile in _tiles(query, key, own):
        with enable_grad():
            parts = [require_grad(each.detach()) for each in _parts(query, key, value, tile, own.group)]
            found = _tile(*parts, tile, own)
            pairs = [
                (y, tile.of_queries(each)) for y, each in zip(found, ct, strict=True) if each is not None
            ]
        pulled = gradients([y for y, _ in pairs], parts, [each for _, each in pairs])
        for total, each in zip(_parts(*totals, tile, own.group), pulled, strict=True):
            total.add_(each)
    return (*totals, None)


@custom_vjp(joint=_rule, node_name="FlexAttentionAutogradOpBackward")
def _in_tiles(query: Tensor, key: Tensor, value: Tensor, own: _Functions) -> tuple[Tensor, Tensor, Tensor]:
    """Compute `_at_once`, one tile after the other."""
    working = float64 if query.dtype is float64 else float32
    result = zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    lse = full(query.shape[:-1], -math.inf, dtype=working, device=query.device)
    highest = full(query.shape[:-1], -math.inf, dtype=working, device=query.device)
    for tile in _tiles(query, key, own):
        found = _tile(*_parts(query, key, value, tile, own.group), tile, own)
        for target, each in zip((result, lse, highest), found, strict=True):
            tile.of_queries(target).copy_(each)
    return result, lse, highest
