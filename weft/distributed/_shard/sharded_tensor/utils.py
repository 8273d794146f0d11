"""`torch.distributed._shard.sharded_tensor.utils`: checks of sizes and shards, and the metadata that processes agree on."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from ....core.device import device
from ....core.layout import strided
from ....core.size import Size
from ... import distributed_c10d as c10d
from ...remote_device import _remote_device
from ..sharding_spec._internals import check_tensor, validate_non_overlapping_shards_metadata
from .metadata import ShardedTensorMetadata, TensorProperties
from .shard import Shard

__all__ = [
    "build_metadata_from_local_shards",
    "build_global_metadata",
    "recalc_global_sharded_tensor_metadata",
]


def _flatten_tensor_size(size: Sequence[Any]) -> Size:
    """A size that is given as numbers or as one sequence. Raises: TypeError for what is no int."""
    dims = list(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else list(size)
    if not all(isinstance(dim, int) for dim in dims):
        raise TypeError(f"size has to be a sequence of ints, found: {dims}")
    return Size(dims)


def _parse_and_validate_remote_device(
    pg: Any, remote_device: _remote_device | None
) -> tuple[int | None, device]:
    """The global rank and the device of a placement.

    Raises: ValueError without a placement, or for a rank that is not in the group; RuntimeError for the name of a worker,
    because there is no RPC.
    """
    if remote_device is None:
        raise ValueError("remote device is None")
    rank, worker = remote_device.rank(), remote_device.worker_name()
    if rank is not None and not c10d._rank_not_in_group(pg):
        ranks = c10d.get_process_group_ranks(pg)
        if rank not in ranks:
            raise ValueError(f"Global rank {rank} does not exist in input process group: {ranks}")
    if worker is not None:
        raise RuntimeError(f"RPC framework needs to be initialized for using worker names: {worker}")
    return rank, remote_device.device()


def check_property(text: str, expected: Any, actual: Any, name: str, **words: Any) -> None:
    """Raises: ValueError with `text` if a property of two tensors differs."""
    if expected != actual:
        raise ValueError(text.format(name=name, expected=expected, actual=actual, **words))


_LOCAL = (
    "Local shards' tensor {name} property need to be the same on rank:{rank}! Found one local shard tensor {name}={expected}, "
    "the other local shard tensor {name}={actual}."
)
_ACROSS = (
    "ShardedTensor {name} property does not match from different ranks! Found {name}={expected} on rank:{first}, and "
    "{name}={actual} on rank:{second}."
)


def build_metadata_from_local_shards(
    local_shards: list[Shard], global_size: Size, current_rank: int, pg: Any
) -> ShardedTensorMetadata:
    """The metadata of the shards of this process. Raises: ValueError if these differ, or are not of this process."""
    first = TensorProperties.create_from_tensor(local_shards[0].tensor)
    for shard in local_shards:
        _check_local_shard(shard, first, current_rank, pg)
    return ShardedTensorMetadata([shard.metadata for shard in local_shards], global_size, first)


def _check_local_shard(shard: Shard, first: TensorProperties, rank: int, pg: Any) -> None:
    tensor, own = shard.tensor, shard.metadata
    owner, where = _parse_and_validate_remote_device(pg, own.placement)
    if tensor.layout != strided:
        raise ValueError(
            f"Only torch.strided layout is currently supported, but found {tensor.layout} on rank:{rank}!"
        )
    if not tensor.is_contiguous():
        raise ValueError("Only torch.contiguous_format memory_format is currently supported!")
    if owner != rank:
        raise ValueError(
            "Local shard metadata's rank does not match with the rank in its process group! Found current rank in the "
            f"process group: {rank}, local ShardMetadata placement's rank: {owner}"
        )
    if tensor.device != where:
        raise ValueError(
            "Local shard tensor device does not match with local Shard's placement! Found local shard tensor device: "
            f"{tensor.device}, local shard metadata placement device: {where}"
        )
    check_property(_LOCAL, list(own.shard_sizes), list(tensor.shape), "size", rank=rank)
    given = TensorProperties.create_from_tensor(tensor)
    check_property(_LOCAL, given.pin_memory, first.pin_memory, "pin_memory", rank=rank)
    check_property(_LOCAL, given.dtype, first.dtype, "dtype", rank=rank)
    check_property(_LOCAL, given.requires_grad, first.requires_grad, "requires_grad", rank=rank)


def build_global_metadata(
    gathered_metadatas: Sequence[ShardedTensorMetadata | None], recalc_metadata: bool = False
) -> ShardedTensorMetadata:
    """The metadata of all shards, from those of each rank. None is the metadata of a rank without shards.

    recalc_metadata: the offsets and the size follow from the sizes of the shards, which are cut along dim 0.

    Raises: ValueError if the ranks disagree, if shards overlap, or if they do not make up a tensor of the size.
    """
    given = [(rank, each) for rank, each in enumerate(gathered_metadatas) if each is not None]
    if not given:
        raise ValueError("ShardedTensor have no local shards on all ranks!")
    first_rank, first = given[0]
    for rank, other in given[1:]:
        words = {"first": first_rank, "second": rank}
        check_property(_ACROSS, first.size, other.size, "global_size", **words)
        for name in ("dtype", "requires_grad", "pin_memory"):
            ours, theirs = (getattr(each.tensor_properties, name) for each in (first, other))
            check_property(_ACROSS, ours, theirs, name, **words)
    shards = [copy.deepcopy(shard) for _, each in given for shard in each.shards_metadata]
    whole = ShardedTensorMetadata(shards, first.size, replace(first.tensor_properties))
    if recalc_metadata:
        recalc_global_sharded_tensor_metadata(whole, 0)
    validate_non_overlapping_shards_metadata(shards)
    check_tensor(shards, whole.size)
    return whole


def recalc_global_sharded_tensor_metadata(
    global_sharded_tensor_metadata: ShardedTensorMetadata, sharded_dim: int
) -> None:
    """Compute the offsets of shards, in the order of their ranks, and the size of the whole."""
    shards = global_sharded_tensor_metadata.shards_metadata
    in_order = sorted(shards, key=lambda shard: shard.placement.rank())  # type: ignore[union-attr, arg-type, return-value]
    starts = [0, *accumulate(shard.shard_sizes[sharded_dim] for shard in in_order)]
    for shard, start in zip(in_order, starts):
        shard.shard_offsets = [start if dim == sharded_dim else 0 for dim in range(len(shard.shard_sizes))]
    sizes = list(shards[0].shard_sizes)
    sizes[sharded_dim] = starts[-1]
    global_sharded_tensor_metadata.size = Size(sizes)
