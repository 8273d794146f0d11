"""`torch.distributed._functional_collectives`: collectives that return new tensors, with gradients.

A group is a ProcessGroup, its name, the list of its ranks, a DeviceMesh of one dimension, or a DeviceMesh and a dimension. Results are
there when a function returns, so `wait_tensor` returns its argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.assembly.joining import cat
from ..ops.creation.creation import empty, empty_like
from ._group import ProcessGroup
from ._groups import new_group
from ._reduce_op import RedOpType
from ._world import (
    _find_pg_by_ranks_and_tag,
    _get_default_group,
    _resolve_process_group,
    get_process_group_ranks,
)
from .device_mesh import DeviceMesh
from .nn import functional

REDUCE_OP_TO_STR = {op: op.name.lower() for op in RedOpType if op is not RedOpType.PREMUL_SUM}
_REDUCTIONS = {name: op for op, name in REDUCE_OP_TO_STR.items()}


def _group(group: Any, tag: str = "") -> ProcessGroup:
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
    return functional.broadcast(self, src, _group(group, tag))


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
    return functional.all_reduce(self, _op(reduceOp), _group(group, tag))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along `gather_dim`."""
    return cat(functional.all_gather(self, _group(group, tag)), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """On each rank its piece, along `scatter_dim`, of the combined tensors. Raises: ValueError unless all pieces have one size."""
    members = _group(group, tag)
    if self.size(scatter_dim) % members.size():
        raise ValueError(
            f"input dimension 0 ({self.size(scatter_dim)} must be a multiple of group_size {members.size()})"
        )
    pieces = [piece.contiguous() for piece in self.chunk(members.size(), scatter_dim)]
    return functional.reduce_scatter(empty_like(pieces[0]), pieces, _op(reduceOp), members)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Sequence[int] | None,
    input_split_sizes: Sequence[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """From each rank the part of its tensor that it has for this one."""
    rows = self.size(0) if output_split_sizes is None else sum(output_split_sizes)
    output = empty(rows, *self.shape[1:], dtype=self.dtype)
    return functional.all_to_all_single(
        output, self, output_split_sizes, input_split_sizes, _group(group, tag)
    )


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any, tag: str = "") -> Tensor:
    """The tensor of the rank that sends to this one: rank r sends to `src_dst[r]`."""
    members = _group(group, tag)
    own, size = members.rank(), members.size()
    target, source = src_dst[own], list(src_dst).index(own)
    sent = [self.numel() if rank == target else 0 for rank in range(size)]
    received = [self.numel() if rank == source else 0 for rank in range(size)]
    return all_to_all_single(self.flatten(), received, sent, members).view(self.shape)


def all_reduce_coalesced(self: Sequence[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:  # noqa: N803
    """`all_reduce` of several tensors."""
    return [all_reduce(each, reduceOp, group, tag) for each in self]


def all_gather_into_tensor_coalesced(self: Sequence[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """`all_gather_tensor` of several tensors along their first dimension."""
    return [all_gather_tensor(each, 0, group, tag) for each in self]


def reduce_scatter_tensor_coalesced(
    inputs: Sequence[Tensor],
    reduceOp: str,  # noqa: N803
    scatter_dim: Sequence[int],
    group: Any,
    tag: str = "",
) -> list[Tensor]:
    """`reduce_scatter_tensor` of several tensors."""
    pairs = zip(inputs, scatter_dim, strict=True)
    return [reduce_scatter_tensor(each, reduceOp, dim, group, tag) for each, dim in pairs]


all_gather_single = all_gather_single_autograd = all_gather_tensor_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_single_autograd = reduce_scatter_tensor_autograd = (
    reduce_scatter_tensor
)
all_to_all_single_autograd = all_to_all_single
all_gather_single_coalesced = all_gather_into_tensor_coalesced
reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
