"""`torch.distributed._shard.metadata`: where a shard begins, how large it is, and which process has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..remote_device import _remote_device


@dataclass
class ShardMetadata:
    """A part of a tensor: its offsets and sizes, one for each dim, and the device of the process that has it.

    Raises: ValueError for negative numbers, or if there are not as many offsets as sizes.

    >>> from weft.distributed._shard.metadata import ShardMetadata
    >>> ShardMetadata([2, 0], [2, 3], "rank:1/cpu")
    ShardMetadata(shard_offsets=[2, 0], shard_sizes=[2, 3], placement=rank:1/cpu)
    """

    __slots__ = ("shard_offsets", "shard_sizes", "placement")

    shard_offsets: list[int]
    shard_sizes: list[int]
    placement: _remote_device | None

    def __init__(
        self,
        shard_offsets: Sequence[int],
        shard_sizes: Sequence[int],
        placement: str | _remote_device | None = None,
    ) -> None:
        self.shard_offsets, self.shard_sizes = shard_offsets, shard_sizes  # type: ignore[assignment]
        self.placement = _remote_device(placement) if isinstance(placement, str) else placement
        if len(shard_offsets) != len(shard_sizes):
            raise ValueError(
                "shard_offsets and shard_sizes should have the same number of elements, found "
                f"{len(shard_offsets)} and {shard_sizes} respectively"
            )
        if any(offset < 0 for offset in shard_offsets):
            raise ValueError("shard_offsets should be >=0")
        if any(size < 0 for size in shard_sizes):
            raise ValueError("shard_sizes should be >= 0")

    def __hash__(self) -> int:
        return hash((*self.shard_offsets, *self.shard_sizes, self.placement))
