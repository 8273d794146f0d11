"""`torch.nn.functional.embedding` with a weight that is cut by rows or columns."""

from __future__ import annotations

from inspect import signature
from typing import Any

from .....nn.functional import embedding
from ..api import custom_sharding_spec_op
from ..chunk_sharding_spec import ChunkShardingSpec
from ._lookups import Lookup, check_weight

_ARGUMENTS = signature(embedding)


@custom_sharding_spec_op(ChunkShardingSpec, embedding)
def sharded_embedding(types: Any, args: tuple, kwargs: Any, pg: Any) -> Any:
    """The rows of the weight with the indices that this process has. All processes of the group have as many.

    `max_norm` scales rows in place, and no gradient flows through that.
    """
    given = _ARGUMENTS.bind(*args, **kwargs or {})
    given.apply_defaults()
    options: dict[str, Any] = given.arguments
    input, weight = options["input"], options["weight"]
    check_weight("Embedding", input, weight, options)
    lookup = Lookup(weight, pg, options["padding_idx"])
    indices = lookup.of_all(input)
    lookup.renormalize(indices, options["max_norm"], options["norm_type"])
    table, padding = lookup.table(0), lookup.own_padding()
    found = [embedding(lookup.rows(each), table, padding_idx=padding) for each in indices]
    return lookup.exchanged(found, lambda parts: parts.sum(0))
