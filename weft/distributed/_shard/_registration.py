"""Functions that are called in the place of public ones when a ShardedTensor is among the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

from ...core.pytree import tree_leaves


def registered(function: Callable, op: Callable, table: dict[Callable, Callable]) -> Callable:
    """Enter `function(types, args, kwargs, process_group)` into a table, and return what checks the arguments before it calls it.

    Raises: TypeError for a function with another number of parameters. The result raises RuntimeError if the ShardedTensors
    among the arguments are of several groups.
    """
    if len(signature(function).parameters) != 4:
        raise TypeError(
            "Custom sharded op function expects signature: (types, args, kwargs, process_group), but received signature: "
            f"{signature(function)}"
        )

    @functools.wraps(function)
    def checked(types: Any, args: tuple, kwargs: Any, process_group: Any) -> Any:
        groups = {id(each._process_group) for each in sharded_tensors(args, kwargs)}
        if len(groups) > 1:
            raise RuntimeError(
                "All distributed tensors should use the same ProcessGroup if used together in an op."
            )
        return function(types, args, kwargs, process_group)

    table[op] = checked
    return checked


def sharded_tensors(args: tuple, kwargs: Any) -> Iterator[Any]:
    """The ShardedTensors among arguments."""
    from .sharded_tensor._base import (
        ShardedTensorBase,
    )  # which imports sharding_spec, where operations are registered

    return (each for each in tree_leaves((args, kwargs)) if isinstance(each, ShardedTensorBase))
