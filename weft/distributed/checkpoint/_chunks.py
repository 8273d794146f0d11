"""Which part of a tensor this process saves and loads."""

from __future__ import annotations

from ...core.size import Size
from ...core.tensor import Tensor
from ..tensor import DTensor, Shard
from .metadata import ChunkStorageMetadata


def chunk_of(tensor: Tensor) -> ChunkStorageMetadata | None:
    """The part of a tensor that this process has; None if it has no element of a tensor that is cut.

    Raises: NotImplementedError for DTensors that are sums over the processes.
    """
    sizes, offsets = list(tensor.shape), [0] * tensor.dim()
    if not isinstance(tensor, DTensor):
        return ChunkStorageMetadata(Size(offsets), Size(sizes))
    for group, place in zip(tensor.device_mesh.get_all_groups(), tensor.placements):
        if place.is_partial():
            raise NotImplementedError(
                f"checkpoints of a DTensor with the placement {place}: redistribute it first"
            )
        if isinstance(place, Shard):
            own = Shard.local_shard_size_and_offset(sizes[place.dim], group.size(), group.rank())
            sizes[place.dim], start = own
            offsets[place.dim] += start
    is_empty = 0 in sizes and 0 not in tensor.shape
    return None if is_empty else ChunkStorageMetadata(Size(offsets), Size(sizes))
