"""ShardedTensors of a size: filled with a number, with random numbers, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.dtype import DType
from ....core.layout import contiguous_format, strided
from ....core.names import named
from ....nn import init
from .api import Shard, ShardedTensor

__all__ = ["empty", "full", "init_from_local_shards", "ones", "rand", "randn", "zeros"]


def _creation(name: str, numbers: str, fill: Callable[[Any], Any] | None) -> Callable[..., ShardedTensor]:
    """A function that creates a ShardedTensor and calls `fill` with it."""

    @named(name, numbers=numbers)
    def create(
        sharding_spec: Any,
        *size: Any,
        dtype: DType | None = None,
        layout: Any = strided,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = contiguous_format,
        process_group: Any = None,
        init_rrefs: bool = False,
    ) -> ShardedTensor:
        """A ShardedTensor of this size {numbers}. All processes of the group call this.

        size: numbers or one sequence. dtype: of the default, if None. process_group: the default group, if None.

        Raises: as ShardedTensor.
        """
        made = ShardedTensor(
            sharding_spec,
            *size,
            dtype=dtype,
            layout=layout,
            requires_grad=requires_grad,
            pin_memory=pin_memory,
            memory_format=memory_format,
            process_group=process_group,
            init_rrefs=init_rrefs,
        )
        if fill is not None:
            fill(made)
        return made

    return create


empty = _creation("empty", "whose numbers are not set", None)
zeros = _creation("zeros", "of zeros", lambda made: init.constant_(made, 0))
ones = _creation("ones", "of ones", lambda made: init.constant_(made, 1))
rand = _creation("rand", "of uniform random numbers in [0, 1)", lambda made: init.uniform_(made, 0, 1))
randn = _creation("randn", "of normal random numbers", lambda made: init.normal_(made, 0, 1))


def full(sharding_spec: Any, size: Sequence[int], fill_value: Any, **options: Any) -> ShardedTensor:
    """A ShardedTensor of this size filled with a number. All processes of the group call this.

    options: as of `ones`. Without a dtype the numbers have the default one.
    """
    made = empty(sharding_spec, *size, **options)
    init.constant_(made, fill_value)  # type: ignore[arg-type]
    return made


def init_from_local_shards(
    local_shards: list[Shard], *global_size: Any, process_group: Any = None, init_rrefs: bool = False
) -> ShardedTensor:
    """The ShardedTensor of the shards of all processes, which tell each other what they have. All processes of the group call this.

    global_size: the size of the whole. None in the place of a number follows from the shards, which are cut along dim 0.

    Raises: ValueError if shards overlap or do not make up the whole, or if processes differ in the size or in properties.

    >>> import weft as torch
    >>> from weft.distributed._shard.sharded_tensor import Shard, init_from_local_shards
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> shards = [Shard.from_tensor_and_offsets(torch.ones(2, 2), [start, 0], rank=0) for start in (0, 2)]
    >>> x = init_from_local_shards(shards, 4, 2)
    >>> x.sharding_spec()
    ChunkShardingSpec(dim=0, placements=[rank:0/cpu, rank:0/cpu])
    >>> dist.destroy_process_group()
    """
    return ShardedTensor._init_from_local_shards(
        local_shards, *global_size, process_group=process_group, init_rrefs=init_rrefs
    )
