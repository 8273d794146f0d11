"""What `embedding` and `embedding_bag` with a weight that is cut have in common.

Each process has indices of its own. All processes look up all indices in the shard that they have, and send each process what it
asked for: sums or columns, which that process puts together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .....core.grad_mode import no_grad
from .....core.tensor import Tensor
from .....ops.assembly.joining import cat, stack
from .....ops.creation.creation import empty_like
from .... import distributed_c10d as c10d
from ....nn.functional import all_gather, all_to_all
from ...sharded_tensor._base import ShardedTensorBase
from ..chunk_sharding_spec import ChunkShardingSpec


def check_weight(name: str, input: Any, weight: Any, options: dict[str, Any]) -> None:
    """Raises: TypeError, ValueError or RuntimeError for what has no implementation."""
    if not isinstance(input, Tensor):
        raise TypeError("input need to be torch.Tensor")
    if not isinstance(weight, ShardedTensorBase):
        raise TypeError("weight needs to be ShardedTensor")
    size = weight.metadata().size
    if len(size) != 2:
        raise ValueError("Weight needs to have exactly 2 dims")
    for extreme in (input.min().item(), input.max().item()) if input.numel() else ():
        if not 0 <= extreme < size[0]:
            raise ValueError(f"Index out of range in Input {extreme} {size[0]}")
    for flag in ("scale_grad_by_freq", "sparse"):
        if options[flag]:
            raise RuntimeError(f'nn.Embedding weight sharded with flag on "{flag}" not supported!')
    if options["max_norm"] and options["max_norm"] <= 0.0:
        raise ValueError('"max_norm" must be larger than zero!')
    if not isinstance(weight._sharding_spec, ChunkShardingSpec):
        raise ValueError("Only ChunkShardingSpec supported for ShardedTensor ops!")
    if len(weight.local_shards()) != 1:
        raise ValueError("Only one local shard supported!")
    if weight._sharding_spec.dim not in (0, 1):
        raise RuntimeError(f"nn.{name} weight sharded on dim {weight._sharding_spec.dim} not supported!")


class Lookup:
    """The shard of this process of a weight, in which the indices of all processes are looked up."""

    def __init__(self, weight: Any, group: Any, padding_idx: int | None) -> None:
        self.group, self.local = group, weight.local_tensor()
        self.by_rows = weight.sharding_spec().dim == 0
        own = weight.local_shards()[0].metadata
        self.start, self.count = own.shard_offsets[0], own.shard_sizes[0]
        rows = weight.metadata().size[0]
        self.padding = None if padding_idx is None else padding_idx % rows
        ranks = c10d.get_process_group_ranks(group)
        shards = {ranks.index(each.placement.rank()): each for each in weight.metadata().shards_metadata}
        self.order = sorted(shards, key=lambda rank: shards[rank].shard_offsets)
        self.widths = [shards[rank].shard_sizes[1] for rank in range(len(ranks))]

    def of_all(self, tensor: Tensor | None) -> Sequence[Any]:
        """The tensors of all processes, which have one size."""
        if tensor is None:
            return [None] * c10d.get_world_size(self.group)
        return all_gather(tensor, group=self.group)

    def table(self, filling: float) -> Tensor:
        """The shard and one more row, for the rows of other shards."""
        more = self.local.new_full((1, self.local.shape[1]), filling)
        return cat([self.local, more]) if self.by_rows else self.local

    def rows(self, indices: Tensor) -> Tensor:
        """The indices as rows of `table`."""
        if not self.by_rows:
            return indices
        return (indices - self.start).where(self._is_here(indices), self.count)

    def own_padding(self) -> int | None:
        """The row of `table` that has no gradient."""
        if self.padding is None or not self.by_rows:
            return self.padding
        is_here = self.start <= self.padding < self.start + self.count
        return self.padding - self.start if is_here else None

    def _is_here(self, indices: Tensor) -> Tensor:
        return (indices >= self.start) & (indices < self.start + self.count)

    def renormalize(self, indices: Sequence[Tensor], max_norm: float | None, norm_type: float) -> None:
        """Scale the rows that some process looks up, and whose norm is larger, to this norm, in place."""
        if max_norm is None:
            return
        with no_grad():
            looked_up = cat([each.flatten() for each in indices]).unique()
            if self.by_rows:
                looked_up = looked_up[self._is_here(looked_up)] - self.start
            found = self.local[looked_up]
            powers = found.abs().pow(norm_type).sum(1)
            if not self.by_rows:
                c10d.all_reduce(powers, group=self.group)
            norms = powers.pow(1.0 / norm_type)
            scales = (max_norm / norms).where(norms > max_norm, 1)
            self.local[looked_up] = found * scales.unsqueeze(1)

    def exchanged(self, results: Sequence[Tensor], combine: Callable[[Tensor], Tensor]) -> Tensor:
        """Send each process what was found for it. Of what all have found for this one, sums (`combine`) or all columns."""
        own = results[c10d.get_rank(self.group)]
        if self.by_rows:
            found = all_to_all([empty_like(own) for _ in results], list(results), self.group)
            return combine(stack(found))
        expected = [own.new_empty((*own.shape[:-1], width)) for width in self.widths]
        found = all_to_all(expected, list(results), self.group)
        return cat([found[rank] for rank in self.order], dim=-1)
