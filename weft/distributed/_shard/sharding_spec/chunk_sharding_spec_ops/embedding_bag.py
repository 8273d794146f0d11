"""`torch.nn.functional.embedding_bag` with a weight that is cut by rows or columns."""

from __future__ import annotations

from inspect import signature
from typing import Any

from .....core.tensor import Tensor
from .....nn.functional import embedding_bag
from ..api import custom_sharding_spec_op
from ..chunk_sharding_spec import ChunkShardingSpec
from ._lookups import Lookup, check_weight

_ARGUMENTS = signature(embedding_bag)


@custom_sharding_spec_op(ChunkShardingSpec, embedding_bag)
def sharded_embedding_bag(types: Any, args: tuple, kwargs: Any, pg: Any) -> Any:
    """The sums, means or maxima of the bags of indices that this process has. All processes have as many indices and bags.

    `max_norm` scales rows in place, and no gradient flows through that.
    """
    given = _ARGUMENTS.bind(*args, **kwargs or {})
    given.apply_defaults()
    options: dict[str, Any] = given.arguments
    input, weight, offsets, factors = (
        options[name] for name in ("input", "weight", "offsets", "per_sample_weights")
    )
    check_weight("EmbeddingBag", input, weight, options)
    _check_bags(options)
    if options["include_last_offset"]:
        offsets = offsets[:-1]
    lookup, mode = Lookup(weight, pg, options["padding_idx"]), options["mode"]
    indices = lookup.of_all(input)
    lookup.renormalize(indices, options["max_norm"], options["norm_type"])
    # A mean over all shards is the sum divided by the number of indices. A row of another shard is no maximum.
    way = "sum" if mode == "mean" and lookup.by_rows else mode
    table, padding = lookup.table(float("-inf") if mode == "max" else 0), lookup.own_padding()
    found = [
        embedding_bag(lookup.rows(ids), table, starts, mode=way, per_sample_weights=each, padding_idx=padding)
        for ids, starts, each in zip(indices, lookup.of_all(offsets), lookup.of_all(factors))
    ]
    if way == mode == "max":
        return lookup.exchanged(found, _maximum)
    total = lookup.exchanged(found, lambda parts: parts.sum(0))
    return total if way == mode else total / _counts(input, offsets, lookup.padding).unsqueeze(1)


def _check_bags(options: dict[str, Any]) -> None:
    """Raises: ValueError or TypeError for bags that no process has."""
    input, offsets, factors = (options[name] for name in ("input", "offsets", "per_sample_weights"))
    if input.dim() > 2:
        raise ValueError("Input more than 2 dims not supported")
    if offsets is not None and input.dim() != 1:
        raise ValueError("Input dimension needs to be exactly 1 dim")
    if offsets is None and input.dim() == 1:
        raise ValueError("offsets is required for 1D input")
    if factors is not None and factors.shape != input.shape:
        raise ValueError(f"per_sample_weights size {factors.size()} not equal to input size {input.size()}")
    if options["mode"] not in ("sum", "mean", "max"):
        raise ValueError(f"mode '{options['mode']}' is not supported")
    if options["include_last_offset"]:
        if offsets is None:
            raise ValueError('offsets is required for flag "include_last_offset"!')
        if offsets[-1] != input.shape[0]:
            raise ValueError(
                'offsets need to have the input size in the end when the flag "include_last_offset" is on!'
            )


def _maximum(parts: Tensor) -> Tensor:
    """The largest of all shards; 0 for a bag without indices, as in one process."""
    largest = parts.amax(0)
    return largest.masked_fill(largest == float("-inf"), 0)


def _counts(input: Tensor, offsets: Tensor | None, padding: int | None) -> Tensor:
    """How many indices each bag has, without those of the padding, at least 1."""
    counted = input.new_ones(input.shape) if padding is None else (input != padding).to(input.dtype)
    if offsets is None:
        return counted.sum(1).clamp(min=1)
    sums = counted.cumsum(0)
    before = (sums - counted)[offsets.clamp(max=len(input) - 1)]
    ends = offsets.new_full((len(offsets),), len(input))
    ends[:-1] = offsets[1:]
    return (sums[ends - 1] - before).where(ends > offsets, 0).clamp(min=1)
