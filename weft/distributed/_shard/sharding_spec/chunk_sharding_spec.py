"""`torch.distributed._shard.sharding_spec.chunk_sharding_spec`: one dim is cut into equal chunks, as by `torch.chunk`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....core.size import Size
from ....core.tensor import Tensor
from ....ops.creation.creation import empty
from ... import distributed_c10d as c10d
from ...remote_device import _remote_device
from .._narrowing import narrowed
from ..metadata import ShardMetadata
from ..sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from ..sharded_tensor.shard import Shard
from ..sharded_tensor.utils import _parse_and_validate_remote_device
from ._internals import get_chunked_dim_size, get_split_size
from .api import ShardingSpec

__all__ = ["ChunkShardingSpec"]


@dataclass
class ChunkShardingSpec(ShardingSpec):
    """Chunk number k of dim `dim` lies at `placements[k]`. Chunks are equal, but for the last ones, as `torch.chunk` makes them.

    Raises: NotImplementedError for the name of a dim, ValueError for what is no int.

    >>> import weft as torch
    >>> from weft.distributed._shard.sharded_tensor import TensorProperties
    >>> from weft.distributed._shard.sharding_spec import ChunkShardingSpec
    >>> spec = ChunkShardingSpec(dim=0, placements=["rank:0/cpu", "rank:1/cpu"])
    >>> [each.shard_sizes for each in spec.build_metadata(torch.Size([5, 2]), TensorProperties()).shards_metadata]
    [[3, 2], [2, 2]]
    """

    dim: int
    placements: list[_remote_device]

    def __post_init__(self) -> None:
        self._verify_dim(self.dim)
        for place, given in enumerate(self.placements):
            if not isinstance(given, _remote_device):
                self.placements[place] = _remote_device(given)

    @staticmethod
    def _verify_dim(dim: Any) -> None:
        if isinstance(dim, str):
            raise NotImplementedError("ChunkShardingSpec does not support named dimension yet!")
        if not isinstance(dim, int):
            raise ValueError(f"Sharding dim needs to be an integer, found: {dim}")

    def build_metadata(
        self, tensor_sizes: Size, tensor_properties: TensorProperties
    ) -> ShardedTensorMetadata:
        """The shards of a tensor of this size. Raises: ValueError if it does not have the dim."""
        if not -len(tensor_sizes) <= self.dim < len(tensor_sizes):
            raise ValueError(f"Invalid sharding dim: {self.dim}")
        split = get_split_size(tensor_sizes[self.dim], len(self.placements))
        shards = []
        for place, remote in enumerate(self.placements):
            sizes, offsets = list(tensor_sizes), [0] * len(tensor_sizes)
            offsets[self.dim] = split * place
            sizes[self.dim] = get_chunked_dim_size(tensor_sizes[self.dim], split, place)
            shards.append(ShardMetadata(offsets, sizes, remote))
        return ShardedTensorMetadata(shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: Tensor, src_rank: int = 0, process_group: Any = None) -> Tensor:
        """The ShardedTensor of the numbers that `tensor` has on rank `src_rank` of the group; each process has one shard.

        Raises: AssertionError for a process without a shard.
        """
        from ..sharded_tensor.api import ShardedTensor  # whose module imports this class

        metadata = self.build_metadata(tensor.shape, TensorProperties.create_from_tensor(tensor))
        own = _scattered(tensor, metadata.shards_metadata, src_rank, process_group)
        own.tensor.requires_grad_(tensor.requires_grad)
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            [own], metadata, process_group, sharding_spec=self
        )


def _scattered(tensor: Tensor, shards: Sequence[ShardMetadata], src_rank: int, group: Any) -> Shard:
    """The shard of this process, from rank `src_rank`. What is sent has the size of the first chunk, which is the largest."""
    places = {_parse_and_validate_remote_device(group, each.placement): each for each in shards}
    own = next(((where, each) for (rank, where), each in places.items() if rank == c10d.get_rank()), None)
    assert own is not None, f"rank {c10d.get_rank()} has no shard in {list(shards)}"
    where, metadata = own
    longest, count = math.prod(shards[0].shard_sizes), math.prod(metadata.shard_sizes)
    received = empty(longest, dtype=tensor.dtype, device=where)
    pieces = None
    if c10d.get_rank(group) == src_rank:
        found = {
            rank: _padded(narrowed(tensor.detach(), each), longest) for (rank, _), each in places.items()
        }
        pieces = [found[rank] for rank in c10d.get_process_group_ranks(group)]
    c10d.scatter(received, pieces, group=group, group_src=src_rank)
    if count < longest:
        received = received[:count].clone()
    return Shard(received.view(metadata.shard_sizes), metadata)


def _padded(piece: Tensor, count: int) -> Tensor:
    """The elements in memory of their own, with more behind them up to a number."""
    result = piece.new_zeros(count)
    result[: piece.numel()] = piece.flatten()
    return result
