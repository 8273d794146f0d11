"""Whether two ShardedTensors are equal, on all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .....ops.creation.from_data import tensor
from .....ops.elementwise.comparison import allclose, equal
from .... import distributed_c10d as c10d
from .._base import ShardedTensorBase
from . import implements


def _compared(function: Callable) -> None:
    @implements(function)
    def compare(types: Any, args: tuple, kwargs: Any, process_group: Any) -> bool:
        if len(args) != 2:
            raise ValueError(f"Expected two arguments for torch.{function.__name__}")
        a, b = args
        if not all(isinstance(each, ShardedTensorBase) for each in args):
            raise TypeError(f"Both arguments to torch.{function.__name__} need to be of type ShardedTensor")
        agree = a.metadata() == b.metadata() and _shards_agree(function, a, b, kwargs or {})
        answers = tensor([int(agree)])
        c10d.all_reduce(answers, op=c10d.ReduceOp.MIN, group=process_group)
        return bool(answers.item())


def _shards_agree(function: Callable, a: Any, b: Any, kwargs: dict[str, Any]) -> bool:
    pairs = list(zip(a.local_shards(), b.local_shards()))
    are_as_many = len(a.local_shards()) == len(b.local_shards())
    return are_as_many and all(
        ours.metadata == theirs.metadata and function(ours.tensor, theirs.tensor, **kwargs)
        for ours, theirs in pairs
    )


for _function in (equal, allclose):
    _compared(_function)
