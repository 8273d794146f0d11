"""Functions that fill ShardedTensors, and those that make one like another."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from .....nn import init
from .....ops.creation import creation, random
from . import implements


def _fills(function: Callable) -> None:
    """Each process fills its shards: random numbers depend on the number of processes."""
    arguments = signature(function)

    @implements(function)
    def fill(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
        given = arguments.bind(*args, **kwargs or {}).arguments
        sharded = given.pop("tensor")
        for shard in sharded.local_shards():
            function(shard.tensor, **given)
        return sharded


def _makes_like(function: Callable, fill: Callable[..., Any]) -> None:
    """`fill(sharded, *args)` fills a new ShardedTensor; the dtype is that of the keywords, or the default one, as in PyTorch."""

    @implements(function)
    def make(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
        like, *others = args
        given = dict(kwargs or {})
        others += [given.pop(name) for name in ("fill_value",) if name in given]
        made = type(like)(like.sharding_spec(), like.metadata().size, **given)
        fill(made, *others)
        return made


for _function in (init.uniform_, init.normal_, init.kaiming_uniform_, init.constant_):
    _fills(_function)
_makes_like(creation.empty_like, lambda made: made)
_makes_like(creation.zeros_like, lambda made: init.constant_(made, 0))
_makes_like(creation.ones_like, lambda made: init.constant_(made, 1))
_makes_like(creation.full_like, init.constant_)
_makes_like(random.rand_like, init.uniform_)
_makes_like(random.randn_like, init.normal_)
