"""`torch.distributed._functional_collectives`: collectives that return new tensors, with gradients.

A group is a ProcessGroup, its name, the list of its ranks, a DeviceMesh of one dimension, or a DeviceMesh and a dimension. Results are
there when a function returns, so `wait_tensor` returns its argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from . import _functional_operators as _operators
from ._group import ProcessGroup
from ._groups import new_group
from ._recorded import recorded
from ._reduce_op import RedOpType
from ._world import (
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _resolve_process_group,
    get_process_group_ranks,
)
from .device_mesh import DeviceMesh
from .nn.functional import gradient_of_source

REDUCE_OP_TO_STR = {op: op.name.lower() for op in RedOpType if op is not RedOpType.PREMUL_SUM}
_REDUCTIONS = {name: op for op, name in REDUCE_OP_TO_STR.items()}


def resolved_group(group: Any, tag: str = "") -> ProcessGroup:
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return _resolve_process_group(group)
    if isinstance(group, DeviceMesh):
        return group.get_group()
    if isinstance(group, tuple) and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, list) and group and isinstance(group[0], int):
        if group == get_process_group_ranks(None):
            return _get_default_group()
        return _find_pg_by_ranks_and_tag(tag, group) or new_group(group)
    raise ValueError(
        f"Invalid type for group, must be one of List, Processgroup, DeviceMesh or (DeviceMesh, int): {group!r}"
    )


def _op(name: str) -> RedOpType:
    if name.lower() not in _REDUCTIONS:
        raise ValueError(f"Unknown reduction {name!r}: it must be one of {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[name.lower()]


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, whose collective is complete."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank `src` on every rank."""
    members = resolved_group(group, tag)

    def back(cotangent: Tensor) -> Tensor:
        return gradient_of_source(cotangent, src, members)

    return recorded(lambda tensor: _operators.broadcast(tensor, src, members), back, self)


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803 (PyTorch's name)
    """The combined tensors of all ranks on every rank.

    >>> import weft as torch
    >>> from weft.distributed._functional_collectives import all_reduce
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> all_reduce(torch.ones(2), "sum", dist.group.WORLD)
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    members, op = resolved_group(group, tag), _op(reduceOp)

    def run(tensor: Tensor) -> Tensor:
        return _operators.all_reduce(tensor, op, members)

    return recorded(run, lambda cotangent: all_reduce(cotangent, reduceOp, members), self)


def _all_gather(tensor: Tensor, members: ProcessGroup) -> Tensor:
    """The tensors of all ranks, one after the other."""

    def run(tensor: Tensor) -> Tensor:
        return _operators.all_gather_into_tensor(tensor, members)

    return recorded(run, lambda cotangent: _reduce_scatter(cotangent, RedOpType.SUM, members), tensor)


def _reduce_scatter(tensor: Tensor, op: RedOpType, members: ProcessGroup) -> Tensor:
    """On each rank its rows of the combined tensors."""

    def run(tensor: Tensor) -> Tensor:
        return _operators.reduce_scatter_tensor(tensor, op, members)

    return recorded(run, lambda cotangent: _all_gather(cotangent, members), tensor)


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along `gather_dim`."""
    members = resolved_group(group, tag)
    found = _all_gather(self, members)
    return found if gather_dim == 0 else cat(found.chunk(members.size()), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """On each rank its piece, along `scatter_dim`, of the combined tensors. Raises: ValueError unless all pieces have one size."""
    members = resolved_group(group, tag)
    return _reduce_scatter(_rows(self, scatter_dim, members), _op(reduceOp), members)


def _rows(tensor: Tensor, dim: int, members: ProcessGroup) -> Tensor:
    """The pieces of the ranks along `dim`, one below the other. Raises: ValueError unless all have one size."""
    if tensor.size(dim) % members.size():
        raise ValueError(
            f"input dimension 0 ({tensor.size(dim)} must be a multiple of group_size {members.size()})"
        )
    return tensor if dim == 0 else cat(tensor.chunk(members.size(), dim))


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """From each rank the part of its tensor that it has for this one."""
    members = resolved_group(group, tag)

    def run(tensor: Tensor) -> Tensor:
        return _operators.all_to_all_single(tensor, output_split_sizes, input_split_sizes, members)

    def back(cotangent: Tensor) -> Tensor:
        return all_to_all_single(cotangent, input_split_sizes, output_split_sizes, members)

    return recorded(run, back, self)


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the rank that sends to this one: rank r sends to `src_dst[r]`."""
    members = resolved_group(group, tag)
    own, size = members.rank(), members.size()
    target, source = src_dst[own], list(src_dst).index(own)
    sent = [self.numel() if rank == target else 0 for rank in range(size)]
    received = [self.numel() if rank == source else 0 for rank in range(size)]
    return all_to_all_single(self.flatten(), received, sent, members).view(self.shape)


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:  # noqa: N803
    """`all_reduce` of several tensors."""
    members, op = resolved_group(group, tag), _op(reduceOp)

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(_operators.all_reduce_coalesced(tensors, op, members))

    def back(*cotangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(all_reduce_coalesced(cotangents, reduceOp, members))

    return list(recorded(run, back, *self))


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """`all_gather_tensor` of several tensors along their first dimension."""
    members = resolved_group(group, tag)

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(_operators.all_gather_into_tensor_coalesced(tensors, members))

    def back(*cotangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(_reduce_scatter_all(cotangents, RedOpType.SUM, members))

    return list(recorded(run, back, *self))


def _reduce_scatter_all(tensors: Sequence[Tensor], op: RedOpType, members: ProcessGroup) -> list[Tensor]:
    """`_reduce_scatter` of several tensors."""

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(_operators.reduce_scatter_tensor_coalesced(tensors, op, members))

    def back(*cotangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(all_gather_into_tensor_coalesced(cotangents, members))

    return list(recorded(run, back, *tensors))


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor],
    reduceOp: str,  # noqa: N803
    scatter_dim: Sequence[int],
    group: Any,
    tag: str = "",
) -> list[Tensor]:
    """`reduce_scatter_tensor` of several tensors."""
    members = resolved_group(group, tag)
    rows = [_rows(each, dim, members) for each, dim in zip(inputs, scatter_dim, strict=True)]
    return _reduce_scatter_all(rows, _op(reduceOp), members)


all_gather_single = all_gather_single_autograd = all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor_autograd = (
    reduce_scatter_tensor
)
all_to_all_single_autograd = all_to_all_single
all_gather_single_coalesced = all_gather_into_tensor_coalesced
reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
