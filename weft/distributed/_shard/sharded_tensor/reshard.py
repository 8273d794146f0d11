"""`torch.distributed._shard.sharded_tensor.reshard`: a ShardedTensor divided in another way."""

from __future__ import annotations

from typing import Any

from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ....ops.creation.creation import empty
from ... import distributed_c10d as c10d
from ...nn.functional import all_to_all
from ..sharding_spec.chunk_sharding_spec import ChunkShardingSpec
from .metadata import ShardMetadata
from .shard import Shard


def resharded(sharded: Any, spec: Any) -> Any:
    """Divide a ShardedTensor as another ChunkShardingSpec says, in place. Gradients flow back to the shards before."""
    before = sharded.sharding_spec()
    if not isinstance(spec, ChunkShardingSpec) or not isinstance(before, ChunkShardingSpec):
        raise NotImplementedError("Only ChunkShardingSpec supported for reshard.")
    shards = sharded.local_shards()
    if len(shards) != 1:
        raise NotImplementedError(
            f"Only single local shard supported for reshard. Number of shards: {len(shards)}"
        )
    if before == spec:
        return sharded
    group, metadata = sharded._process_group, sharded.metadata()
    old = _by_rank(metadata.shards_metadata, group)
    new = _by_rank(spec.build_metadata(metadata.size, metadata.tensor_properties).shards_metadata, group)
    own = new[c10d.get_rank(group)]
    sharded._local_shards = [Shard(_exchanged(shards[0].tensor, old, new, spec.dim, before.dim, group), own)]
    metadata.shards_metadata = new
    sharded._sharding_spec = spec
    return sharded


def _by_rank(shards: list[ShardMetadata], group: Any) -> list[ShardMetadata]:
    """The shards in the order of the processes that have them, each of which has one."""
    ranks = c10d.get_process_group_ranks(group)
    return sorted(shards, key=lambda shard: ranks.index(shard.placement.rank()))  # type: ignore[union-attr, arg-type]


def _exchanged(
    tensor: Tensor, old: list[ShardMetadata], new: list[ShardMetadata], dim: int, old_dim: int, group: Any
) -> Tensor:
    """The new shard of this process: from each process the part that its old shard has of it."""
    rank = c10d.get_rank(group)
    sent = [_part(tensor, old[rank], each, dim) for each in new]
    expected = [_common_sizes(each, new[rank]) for each in old]
    found = all_to_all(
        [empty(sizes, dtype=tensor.dtype, device=tensor.device) for sizes in expected], sent, group
    )
    in_order = sorted(range(len(old)), key=lambda place: old[place].shard_offsets[old_dim])
    return cat([found[place] for place in in_order], dim=old_dim).contiguous()


def _part(tensor: Tensor, own: ShardMetadata, other: ShardMetadata, dim: int) -> Tensor:
    """What another shard has of this one."""
    start = max(other.shard_offsets[dim] - own.shard_offsets[dim], 0)
    count = _common_sizes(own, other)[dim]
    return tensor.narrow(dim, start if count else 0, count).contiguous()


def _common_sizes(a: ShardMetadata, b: ShardMetadata) -> list[int]:
    """The sizes of what two shards have in common."""
    boxes = zip(a.shard_offsets, a.shard_sizes, b.shard_offsets, b.shard_sizes)
    return [max(min(i + m, j + n) - max(i, j), 0) for i, m, j, n in boxes]
