"""The functions that take ShardedTensors, and how programs add theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..._registration import registered

# Function -> what answers its calls with ShardedTensors.
OPS: dict[Callable, Callable] = {}
CUSTOM: dict[Callable, Callable] = {}  # of programs; these come first


def custom_sharded_op_impl(func: Callable) -> Callable[[Callable], Callable]:
    """Decorator: `function(types, args, kwargs, process_group)` answers calls of `func` with a ShardedTensor among the arguments.

    >>> import weft as torch
    >>> from weft.distributed._shard.sharded_tensor import custom_sharded_op_impl
    >>> @custom_sharded_op_impl(torch.numel)
    ... def numel(types, args, kwargs, process_group):
    ...     return args[0].metadata().size.numel()
    """
    return partial(registered, op=func, table=CUSTOM)


def implements(*functions: Callable) -> Callable[[Callable], Callable]:
    """Decorator: the function answers calls of these."""

    def decorate(function: Callable) -> Callable:
        for each in functions:
            registered(function, each, OPS)
        return function

    return decorate


from . import comparisons, filling, of_tensors  # noqa: E402, F401 (they fill the table)
