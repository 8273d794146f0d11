"""Which parts of a tensor this process saves and loads."""

from __future__ import annotations

import math

from ...core.size import Size
from ...core.tensor import Tensor
from .._shard.sharded_tensor._base import ShardedTensorBase
from ..tensor import DTensor
from ..tensor._storage import own_piece
from .metadata import ChunkStorageMetadata, TensorProperties

Part = tuple[ChunkStorageMetadata, Tensor]


def is_divided(tensor: Tensor) -> bool:
    """Whether each process has parts of the tensor."""
    return isinstance(tensor, (DTensor, ShardedTensorBase))


def parts_of(tensor: Tensor) -> list[Part]:
    """The parts of a tensor that this process has, but for those without elements of a tensor that is divided.

    Raises: NotImplementedError for DTensors that are sums over the processes.
    """
    if isinstance(tensor, ShardedTensorBase):
        found = [
            (_chunk(each.metadata.shard_offsets, each.metadata.shard_sizes), each.tensor)
            for each in tensor.local_shards()
        ]
    elif isinstance(tensor, DTensor):
        found = [(_chunk_of(tensor), tensor._local_tensor)]
    else:
        return [(_chunk([0] * tensor.dim(), tensor.shape), tensor)]
    is_empty = 0 in tensor.spec.shape
    return [(chunk, part) for chunk, part in found if is_empty or math.prod(chunk.sizes)]


def size_of(tensor: Tensor) -> Size:
    """The size of the whole tensor."""
    return Size(tensor.spec.shape)


def properties_of(tensor: Tensor) -> TensorProperties:
    """The dtype and the like of the whole tensor."""
    if not isinstance(tensor, ShardedTensorBase):
        return TensorProperties.create_from_tensor(tensor)
    own = tensor.metadata().tensor_properties
    return TensorProperties(own.dtype, own.layout, own.requires_grad, own.memory_format, own.pin_memory)


def _chunk(offsets: list[int], sizes: list[int] | Size) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(Size(offsets), Size(sizes))


def _chunk_of(tensor: DTensor) -> ChunkStorageMetadata:
    mesh, places = tensor.device_mesh, tensor.placements
    partial = next((place for place in places if place.is_partial()), None)
    if partial is not None:
        raise NotImplementedError(
            f"checkpoints of a DTensor with the placement {partial}: redistribute it first"
        )
    pieces = [own_piece(size, dim, mesh, places) for dim, size in enumerate(tensor.shape)]
    return _chunk([start for _, start in pieces], [size for size, _ in pieces])
