"""Which part of a tensor this process saves and loads."""

from __future__ import annotations

from ...core.size import Size
from ...core.tensor import Tensor
from ..tensor import DTensor
from ..tensor._storage import own_piece
from .metadata import ChunkStorageMetadata


def chunk_of(tensor: Tensor) -> ChunkStorageMetadata | None:
    """The part of a tensor that this process has; None if it has no element of a tensor that is cut.

    Raises: NotImplementedError for DTensors that are sums over the processes.
    """
    sizes, offsets = list(tensor.shape), [0] * tensor.dim()
    if not isinstance(tensor, DTensor):
        return ChunkStorageMetadata(Size(offsets), Size(sizes))
    mesh, places = tensor.device_mesh, tensor.placements
    partial = next((place for place in places if place.is_partial()), None)
    if partial is not None:
        raise NotImplementedError(
            f"checkpoints of a DTensor with the placement {partial}: redistribute it first"
        )
    pieces = [own_piece(size, dim, mesh, places) for dim, size in enumerate(tensor.shape)]
    sizes, offsets = [size for size, _ in pieces], [start for _, start in pieces]
    is_empty = 0 in sizes and 0 not in tensor.shape
    return None if is_empty else ChunkStorageMetadata(Size(offsets), Size(sizes))
