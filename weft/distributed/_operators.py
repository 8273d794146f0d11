"""The operators of `torch.ops` that are collectives, with PyTorch's schemas.

`_c10d_functional` and `c10d_functional` (the older form, which names a group by its ranks) return new tensors. Those of `c10d` take objects of PyTorch's C++
classes, which weft does not have: they have schemas, and programs call the functions of `torch.distributed` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.tensor import Tensor
from . import _functional_collectives as functional
from ._functional_operators import shard_dim_alltoall

Overload = tuple[str, Callable[..., Any] | None]  # a schema without the name, and what carries it out


def _all_gather(input: Tensor, group_size: int, group: Any) -> Tensor:
    return functional.all_gather_tensor(input, 0, group)


def _all_gather_coalesced(inputs: list[Tensor], group_size: int, group: Any) -> list[Tensor]:
    return functional.all_gather_into_tensor_coalesced(inputs, group)


def _reduce_scatter(input: Tensor, reduce_op: str, group_size: int, group: Any) -> Tensor:
    return functional.reduce_scatter_tensor(input, reduce_op, 0, group)


def _reduce_scatter_coalesced(
    inputs: list[Tensor], reduce_op: str, group_size: int, group: Any
) -> list[Tensor]:
    return functional.reduce_scatter_tensor_coalesced(inputs, reduce_op, [0] * len(inputs), group)


def _all_to_all(input: Tensor, received: Sequence[int], sent: Sequence[int], group: Any) -> Tensor:
    return functional.all_to_all_single(input, received, sent, group)


def _shard_dim_alltoall(input: Tensor, gather_dim: int, shard_dim: int, group: Any) -> Tensor:
    return shard_dim_alltoall(input, gather_dim, shard_dim, functional.resolved_group(group))


FUNCTIONAL: dict[str, Overload] = {
    "all_gather_into_tensor": ("(Tensor input, int group_size, Any group_name) -> Tensor", _all_gather),
    "all_gather_into_tensor_coalesced": (
        "(Tensor[] inputs, int group_size, Any group_name) -> Tensor[]",
        _all_gather_coalesced,
    ),
    "all_reduce": ("(Tensor input, str reduce_op, Any group_name) -> Tensor", functional.all_reduce),
    "all_reduce_coalesced": (
        "(Tensor[] inputs, str reduce_op, Any group_name) -> Tensor[]",
        functional.all_reduce_coalesced,
    ),
    "all_to_all_single": (
        "(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, Any group_name) -> Tensor",
        _all_to_all,
    ),
    "broadcast": ("(Tensor input, int src, Any group_name) -> Tensor", functional.broadcast),
    "reduce_scatter_tensor": (
        "(Tensor input, str reduce_op, int group_size, Any group_name) -> Tensor",
        _reduce_scatter,
    ),
    "reduce_scatter_tensor_coalesced": (
        "(Tensor[] inputs, str reduce_op, int group_size, Any group_name) -> Tensor[]",
        _reduce_scatter_coalesced,
    ),
    "wait_tensor": ("(Tensor tensor) -> Tensor", functional.wait_tensor),
}
_GROUP = "str tag, int[] ranks, int group_size"


def _of_ranks(name: str, takes_size: bool = False) -> Callable[..., Any]:
    """The functional operator `name`, given the ranks of a group; `takes_size`: it takes their number as well."""
    function = FUNCTIONAL[name][1]
    assert function is not None

    def call(*arguments: Any) -> Any:
        *given, tag, ranks, group_size = arguments
        return function(*given, *([group_size] * takes_size), functional.resolved_group(ranks, tag))

    return call


_OF_RANKS: dict[str, Overload] = {
    "all_gather_into_tensor": (
        f"(Tensor shard, {_GROUP}) -> Tensor",
        _of_ranks("all_gather_into_tensor", True),
    ),
    "all_gather_into_tensor_coalesced": (
        f"(Tensor[] input, {_GROUP}) -> Tensor[]",
        _of_ranks("all_gather_into_tensor_coalesced", True),
    ),
    "all_reduce": (f"(Tensor self, str reduceOp, {_GROUP}) -> Tensor", _of_ranks("all_reduce")),
    "all_reduce_coalesced": (
        f"(Tensor[] self, str reduceOp, {_GROUP}) -> Tensor[]",
        _of_ranks("all_reduce_coalesced"),
    ),
    "all_to_all_single": (
        f"(Tensor input, SymInt[]? output_split_sizes, SymInt[]? input_split_sizes, {_GROUP}) -> Tensor",
        _of_ranks("all_to_all_single"),
    ),
    "broadcast": (f"(Tensor self, int src, {_GROUP}) -> Tensor", _of_ranks("broadcast")),
    "reduce_scatter_tensor": (
        f"(Tensor input, str reduceOp, {_GROUP}) -> Tensor",
        _of_ranks("reduce_scatter_tensor", True),
    ),
    "reduce_scatter_tensor_coalesced": (
        f"(Tensor[] inputs, str reduceOp, {_GROUP}) -> Tensor[]",
        _of_ranks("reduce_scatter_tensor_coalesced", True),
    ),
    "wait_tensor": ("(Tensor self) -> Tensor", functional.wait_tensor),
}

_GROUP_OBJECT, _WORK, _REDUCE_OP = (
    f"__torch__.torch.classes.c10d.{name}" for name in ("ProcessGroup", "Work", "ReduceOp")
)
_END = "bool async_op=True, int timeout=-1"
_C10D = {
    "_allgather_base_": f"(Tensor output_tensor, Tensor input_tensor, {_GROUP_OBJECT} process_group, {_END}) -> (Tensor, {_WORK})",
    "_reduce_scatter_base_": f"(Tensor output_tensor, Tensor input_tensor, {_GROUP_OBJECT} process_group, {_REDUCE_OP} reduce_op, {_END}) -> (Tensor, {_WORK})",
    "allgather_": f"(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP_OBJECT} process_group, {_END}) -> (Tensor[][], {_WORK})",
    "allgather_coalesced_": f"(Tensor[][] output_lists, Tensor[] input_list, {_GROUP_OBJECT} process_group, bool async_op=True) -> {_WORK}",
    "allgather_into_tensor_coalesced_": f"(Tensor[] outputs, Tensor[] inputs, {_GROUP_OBJECT} process_group, bool async_op=True) -> {_WORK}",
    "allreduce_": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, {_REDUCE_OP} reduce_op, Tensor? sparse_indices, {_END}) -> (Tensor[], {_WORK})",
    "allreduce_coalesced_": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, {_REDUCE_OP} reduce_op, {_END}) -> {_WORK}",
    "alltoall_": f"(Tensor[] output_tensors, Tensor[] input_tensors, {_GROUP_OBJECT} process_group, {_END}) -> (Tensor[], {_WORK})",
    "alltoall_base_": f"(Tensor output, Tensor input, {_GROUP_OBJECT} process_group, int[] output_split_sizes, int[] input_split_sizes, {_END}) -> {_WORK}",
    "barrier": f"(Tensor tensor, {_GROUP_OBJECT} process_group, int[] device_ids, {_END}) -> {_WORK}",
    "broadcast_": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, int root_rank, int root_tensor, {_END}) -> (Tensor[], {_WORK})",
    "gather_": f"(Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP_OBJECT} process_group, int root_rank, {_END}) -> {_WORK}",
    "monitored_barrier_": f"(Tensor tensor, {_GROUP_OBJECT} process_group, int[] device_ids, int timeout, bool wait_all_ranks) -> ()",
    "recv_": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, int src, int tag) -> {_WORK}",
    "recv_any_source_": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, int tag) -> {_WORK}",
    "reduce_": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, {_REDUCE_OP} reduce_op, int root_rank, int root_tensor, {_END}) -> {_WORK}",
    "reduce_scatter_": f"(Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP_OBJECT} process_group, {_REDUCE_OP} reduce_op, {_END}) -> (Tensor[], {_WORK})",
    "reduce_scatter_tensor_coalesced_": f"(Tensor[] outputs, Tensor[] inputs, {_GROUP_OBJECT} process_group, {_REDUCE_OP} reduce_op, {_END}) -> {_WORK}",
    "scatter_": f"(Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP_OBJECT} process_group, int root_rank, {_END}) -> (Tensor[], {_WORK})",
    "send": f"(Tensor[] tensors, {_GROUP_OBJECT} process_group, int dst, int tag) -> {_WORK}",
}  # fmt: skip

_TABLES: dict[str, dict[str, Overload]] = {
    "_c10d_functional": FUNCTIONAL,
    "_c10d_functional_autograd": {
        name: FUNCTIONAL[name]
        for name in ("all_gather_into_tensor", "all_to_all_single", "reduce_scatter_tensor")
    },
    "_dtensor": {
        "shard_dim_alltoall": (
            "(Tensor input, int gather_dim, int shard_dim, Any group_name) -> Tensor",
            _shard_dim_alltoall,
        )
    },
    "c10d": {name: (text, None) for name, text in _C10D.items()},
    "c10d_functional": _OF_RANKS,
}


def overloads(qualname: str) -> list[Overload]:
    """The schema and the function of the operator `namespace::name`; empty if there is none."""
    namespace, _, name = qualname.partition("::")
    found = _TABLES[namespace].get(name)
    return [] if found is None else [(qualname + found[0], found[1])]
