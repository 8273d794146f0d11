"""Arithmetic of shards: chunks of a dim, whether shards overlap, and whether they make up a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..metadata import ShardMetadata


def get_split_size(dim_size: int, chunks: int) -> int:
    """How many elements a chunk has, but for the last ones, as in `torch.chunk`."""
    return -(-dim_size // chunks)


def get_chunked_dim_size(dim_size: int, split_size: int, idx: int) -> int:
    """How many elements chunk number `idx` has."""
    return max(min(dim_size - split_size * idx, split_size), 0)


def validate_non_overlapping_shards_metadata(shards: Sequence[ShardMetadata]) -> None:
    """Raises: ValueError if two shards overlap."""
    found = _overlapping(shards)
    if found is not None:
        raise ValueError(f"Shards {found[0]} and {found[1]} overlap")


def _overlapping(shards: Sequence[ShardMetadata]) -> tuple[ShardMetadata, ShardMetadata] | None:
    """Two shards that overlap. Only those are compared that do so along the dim with the most different offsets."""
    if len(shards) < 2 or not shards[0].shard_offsets:
        return None
    dims = range(len(shards[0].shard_offsets))
    sweep = max(dims, key=lambda dim: len({shard.shard_offsets[dim] for shard in shards}))
    reaching: list[ShardMetadata] = []
    for shard in sorted(shards, key=lambda shard: shard.shard_offsets[sweep]):
        start = shard.shard_offsets[sweep]
        reaching = [each for each in reaching if each.shard_offsets[sweep] + each.shard_sizes[sweep] > start]
        other = next((each for each in reaching if _overlap(each, shard)), None)
        if other is not None:
            return other, shard
        reaching.append(shard)
    return None


def _overlap(a: ShardMetadata, b: ShardMetadata) -> bool:
    boxes = zip(a.shard_offsets, a.shard_sizes, b.shard_offsets, b.shard_sizes)
    return all(start < other + length and other < start + size for start, size, other, length in boxes)


def check_tensor(shards_metadata: Sequence[ShardMetadata], tensor_dims: Sequence[int]) -> None:
    """Raises: ValueError unless shards that do not overlap make up a tensor of these sizes."""
    rank = len(shards_metadata[0].shard_offsets)
    if len(tensor_dims) != rank:
        raise ValueError(f"Rank of tensor is {len(tensor_dims)}, but shards rank is {rank}")
    for shard in shards_metadata:
        for offset, length, size in zip(shard.shard_offsets, shard.shard_sizes, tensor_dims):
            if offset + length > size:
                raise ValueError(
                    f"Shard offset {offset} and length {length} exceeds tensor dim: {size} for shard {shard}"
                )
    found, wanted = sum(math.prod(shard.shard_sizes) for shard in shards_metadata), math.prod(tensor_dims)
    if found != wanted:
        raise ValueError(
            f"Total volume of shards: {found} does not match tensor volume: {wanted}, in other words all the individual "
            "shards do not cover the entire tensor"
        )
