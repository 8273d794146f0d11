"""The part of a tensor that is a shard."""

from ...core.tensor import Tensor
from .metadata import ShardMetadata


def narrowed(tensor: Tensor, metadata: ShardMetadata) -> Tensor:
    """A view of the elements of the shard."""
    for dim, (offset, size) in enumerate(zip(metadata.shard_offsets, metadata.shard_sizes)):
        if size < tensor.shape[dim]:
            tensor = tensor.narrow(dim, offset if size else 0, size)
    return tensor
