"""The shards of all processes as one tensor, on one of them."""

from __future__ import annotations

import math
from typing import Any

from ....core.dtype import DType
from ....core.tensor import Tensor
from ....ops.creation.creation import empty
from ... import distributed_c10d as c10d
from .._narrowing import narrowed


def gathered(sharded: Any, dst: int, out: Tensor | None, dtype: DType) -> None:
    """Write all shards into `out` on rank `dst`, sent as numbers of this dtype."""
    group, metadata = sharded._process_group, sharded.metadata()
    is_target = c10d.get_rank() == dst
    _check_output(is_target, dst, tuple(metadata.size), out)
    ranks = c10d.get_process_group_ranks(group)
    ends, places = [0] * len(ranks), []
    for each in metadata.shards_metadata:
        rank, count = ranks.index(each.placement.rank()), math.prod(each.shard_sizes)
        places.append((rank, ends[rank], ends[rank] + count))
        ends[rank] += count
    own = empty(max(ends), dtype=dtype, device=_device_of(sharded, out))
    start = 0
    for shard in sharded.local_shards():
        end = start + shard.tensor.numel()
        own[start:end] = shard.tensor.detach().flatten()
        start = end
    found = [own.new_empty(own.shape) for _ in ranks] if is_target else None
    c10d.gather(own, found, dst=dst, group=group)
    if found is None or out is None:
        return
    for each, (rank, start, end) in zip(metadata.shards_metadata, places):
        box = narrowed(out.detach(), each)
        box.copy_(found[rank][start:end].view(box.shape))


def _device_of(sharded: Any, out: Tensor | None) -> Any:
    """The device whose tensors the group sends."""
    shards = sharded.local_shards()
    return shards[0].tensor.device if shards else None if out is None else out.device


def _check_output(is_target: bool, dst: int, size: tuple[int, ...], out: Tensor | None) -> None:
    if not is_target:
        if out is not None:
            raise ValueError("Argument ``dst_tensor`` must NOT be specified on non-destination ranks.")
    elif out is None:
        raise ValueError(f"Argument ``dst_tensor`` must be specified on destination rank {dst}")
    elif tuple(out.shape) != size:
        raise ValueError(f"Argument ``dst_tensor`` have size {tuple(out.shape)},but should be {size}")
