"""The operators of `torch.ops._c10d_functional`: collectives that return new tensors. Nothing here is recorded.

`_functional_collectives.py` adds gradients. DTensors call these functions themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.layout import contiguous_format
from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from . import _collectives
from ._group import ProcessGroup
from ._observers import operator
from ._reduce_op import RedOpType, ReduceOp

Reduction = ReduceOp | RedOpType


def _copied(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=contiguous_format)


def _with_rows(tensor: Tensor, rows: int) -> Tensor:
    """A new tensor with another first size."""
    return tensor.new_empty((rows, *tensor.spec.shape[1:]))


@operator("_c10d_functional::all_reduce")
def all_reduce(input: Tensor, op: Reduction, group: ProcessGroup) -> Tensor:
    """The combined tensors of all ranks."""
    found = _copied(input)
    _collectives.all_reduce(found, op, group)
    return found


@operator("_c10d_functional::all_reduce_coalesced")
def all_reduce_coalesced(inputs: Sequence[Tensor], op: Reduction, group: ProcessGroup) -> list[Tensor]:
    """`all_reduce` of several tensors."""
    return [all_reduce(each, op, group) for each in inputs]


@operator("_c10d_functional::broadcast")
def broadcast(input: Tensor, src: int, group: ProcessGroup) -> Tensor:
    """The tensor of rank `src` of all processes."""
    found = _copied(input)
    _collectives.broadcast(found, src, group)
    return found


@operator("_c10d_functional::all_gather_into_tensor")
def all_gather_into_tensor(input: Tensor, group: ProcessGroup) -> Tensor:
    """The tensors of all ranks, one after the other. All have one size."""
    found = _with_rows(input, input.spec.shape[0] * group.size())
    _collectives.all_gather_into_tensor(found, input, group)
    return found


@operator("_c10d_functional::all_gather_into_tensor_coalesced")
def all_gather_into_tensor_coalesced(inputs: Sequence[Tensor], group: ProcessGroup) -> list[Tensor]:
    """`all_gather_into_tensor` of several tensors."""
    return [all_gather_into_tensor(each, group) for each in inputs]


@operator("_c10d_functional::reduce_scatter_tensor")
def reduce_scatter_tensor(input: Tensor, op: Reduction, group: ProcessGroup) -> Tensor:
    """The rows of this rank of the combined tensors. All ranks have as many rows."""
    found = _with_rows(input, input.spec.shape[0] // group.size())
    _collectives.reduce_scatter_tensor(found, input.contiguous(), op, group)
    return found


@operator("_c10d_functional::reduce_scatter_tensor_coalesced")
def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor], op: Reduction, group: ProcessGroup
) -> list[Tensor]:
    """`reduce_scatter_tensor` of several tensors."""
    return [reduce_scatter_tensor(each, op, group) for each in inputs]


@operator("_c10d_functional::all_to_all_single")
def all_to_all_single(
    input: Tensor, received: Sequence[int] | None, sent: Sequence[int] | None, group: ProcessGroup
) -> Tensor:
    """The rows that each rank has for this one; `received` and `sent` are how many come from and go to each rank, None for as many."""
    found = _with_rows(input, input.spec.shape[0] if received is None else sum(received))
    _collectives.all_to_all_single(found, input.contiguous(), received, sent, group)
    return found


@operator("_dtensor::shard_dim_alltoall")
def shard_dim_alltoall(input: Tensor, gather_dim: int, shard_dim: int, group: ProcessGroup) -> Tensor:
    """The piece along `shard_dim` of a tensor of which each rank has a piece along `gather_dim`. All pieces have one size."""
    given = [_copied(each) for each in input.chunk(group.size(), shard_dim)]
    found = [each.new_empty(each.spec.shape) for each in given]
    _collectives.all_to_all(found, given, group)
    return cat(found, gather_dim)
