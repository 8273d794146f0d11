"""`torch.distributed._shard.sharding_spec.api`: specs in general, lists of shards, and operations that a spec has of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ....core.size import Size
from ....core.tensor import Tensor
from ...remote_device import _remote_device
from .._registration import registered
from ..metadata import ShardMetadata
from ..sharded_tensor.metadata import ShardedTensorMetadata, TensorProperties
from ._internals import (
    check_tensor,
    get_chunked_dim_size,
    get_split_size,
    validate_non_overlapping_shards_metadata,
)

__all__ = [
    "DevicePlacementSpec",
    "EnumerableShardingSpec",
    "PlacementSpec",
    "ShardMetadata",
    "ShardingSpec",
    "custom_sharding_spec_op",
]


class PlacementSpec(ABC):  # noqa: B024 (PyTorch's class has no abstract methods either)
    """Where something lies. Programs may define subclasses."""


@dataclass
class DevicePlacementSpec(PlacementSpec):
    """It lies on one device."""

    device: _remote_device

    def __post_init__(self) -> None:
        if not isinstance(self.device, _remote_device):
            self.device = _remote_device(self.device)


class ShardingSpec(ABC):
    """How a tensor is divided. Programs may define subclasses."""

    @abstractmethod
    def build_metadata(
        self, tensor_sizes: Size, tensor_properties: TensorProperties
    ) -> ShardedTensorMetadata:
        """The shards of a tensor of this size."""

    @abstractmethod
    def shard(self, tensor: Tensor, src_rank: int = 0, process_group: Any = None) -> Tensor:
        """The ShardedTensor of the numbers that `tensor` has on rank `src_rank` of the group."""


@dataclass
class EnumerableShardingSpec(ShardingSpec):
    """A list of shards, which must not overlap.

    Raises: ValueError if they do, if there are none, or if they differ in the number of dims.
    """

    shards: list[ShardMetadata]

    def __post_init__(self) -> None:
        if not self.shards:
            raise ValueError(f"Empty shard list provided: {self.shards}")
        rank = len(self.shards[0].shard_offsets)
        other = next((each for each in self.shards if len(each.shard_offsets) != rank), None)
        if other is not None:
            raise ValueError(f"Found inconsistent ranks for shards: {rank} and {len(other.shard_offsets)}")
        validate_non_overlapping_shards_metadata(self.shards)

    def build_metadata(
        self, tensor_sizes: Size, tensor_properties: TensorProperties
    ) -> ShardedTensorMetadata:
        check_tensor(self.shards, tensor_sizes)
        return ShardedTensorMetadata(self.shards, tensor_sizes, tensor_properties)

    def shard(self, tensor: Tensor, src_rank: int = 0, process_group: Any = None) -> Tensor:
        raise NotImplementedError("EnumerableShardingSpec.shard not implemented yet!")


# Class of specs -> function -> what is called in its place for ShardedTensors with such a spec.
_CUSTOM_SHARDING_SPEC_OPS: dict[str, dict[Callable, Callable]] = {}


def custom_sharding_spec_op(sharding_spec_class: type, func: Callable) -> Callable[[Callable], Callable]:
    """Decorator: `function(types, args, kwargs, process_group)` answers calls of `func` with ShardedTensors whose spec has this class."""
    table = _CUSTOM_SHARDING_SPEC_OPS.setdefault(sharding_spec_class.__qualname__, {})
    return partial(registered, op=func, table=table)


def custom_op_of(sharding_spec: ShardingSpec, func: Callable) -> Callable | None:
    """What the spec has in the place of a function."""
    return _CUSTOM_SHARDING_SPEC_OPS.get(type(sharding_spec).__qualname__, {}).get(func)


def _infer_sharding_spec_from_shards_metadata(shards_metadata: Sequence[ShardMetadata]) -> ShardingSpec:
    """The ChunkShardingSpec of these shards, or an EnumerableShardingSpec if they are no chunks of one dim."""
    from .chunk_sharding_spec import ChunkShardingSpec  # it is a subclass of ShardingSpec

    dims = {dim for shard in shards_metadata for dim, offset in enumerate(shard.shard_offsets) if offset}
    if len(dims) == 1:
        (dim,) = dims
        in_order = sorted(shards_metadata, key=lambda shard: sum(shard.shard_offsets))
        if _are_chunks([(shard.shard_offsets[dim], shard.shard_sizes[dim]) for shard in in_order]):
            return ChunkShardingSpec(dim, [shard.placement for shard in in_order])  # type: ignore[misc]
    return EnumerableShardingSpec(list(shards_metadata))


def _are_chunks(pieces: list[tuple[int, int]]) -> bool:
    total = sum(size for _, size in pieces)
    split = get_split_size(total, len(pieces))
    expected = [(split * place, get_chunked_dim_size(total, split, place)) for place in range(len(pieces))]
    return sorted(pieces) == expected
