"""`torch.distributed._shard.sharded_tensor.shard`: a shard with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....core.tensor import Tensor
from ...remote_device import _remote_device
from ..metadata import ShardMetadata

__all__ = ["Shard"]


@dataclass
class Shard:
    """The tensor of a shard of this process, and its metadata.

    Raises: ValueError if the metadata has another size or device.

    >>> import weft as torch
    >>> from weft.distributed._shard.sharded_tensor import Shard
    >>> Shard.from_tensor_and_offsets(torch.zeros(2, 3), [4, 0], rank=1).metadata
    ShardMetadata(shard_offsets=[4, 0], shard_sizes=[2, 3], placement=rank:1/cpu)
    """

    __slots__ = ("tensor", "metadata")

    tensor: Tensor
    metadata: ShardMetadata

    def __post_init__(self) -> None:
        sizes, place = list(self.tensor.shape), self.metadata.placement
        if sizes != list(self.metadata.shard_sizes):
            raise ValueError(
                f"Shard tensor size does not match with metadata.shard_lengths! Found shard tensor size: {sizes}, "
                f"metadata.shard_lengths: {self.metadata.shard_sizes}, "
            )
        if place is not None and place.device() != self.tensor.device:
            raise ValueError(
                "Local shard tensor device does not match with local Shard's placement! Found local shard tensor device: "
                f"{self.tensor.device}, local shard metadata placement device: {place.device()}"
            )

    @classmethod
    def from_tensor_and_offsets(cls, tensor: Tensor, shard_offsets: Sequence[int], rank: int) -> Shard:
        """The shard that begins at these offsets, of the process with this rank."""
        place = _remote_device(f"rank:{rank}/{tensor.device}")
        return cls(tensor, ShardMetadata(shard_offsets, list(tensor.shape), place))
