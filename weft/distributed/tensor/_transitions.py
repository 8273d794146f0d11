"""How a rank's part of a tensor changes when its placement along one dimension of a mesh does, with gradients.

The gradient of a part is placed as the part is: that of a shard is the shard of the gradient, that of a replica is a replica. The gradient of a
summand is a replica, too. Each transition here has another one as its derivative.
"""

from __future__ import annotations

from typing import Any

from ...autograd.function import Function
from ...core.layout import contiguous_format
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from ...ops.creation.creation import zeros_like
from .. import distributed_c10d as c10d
from .._group import ProcessGroup
from .._reduce_op import ReduceOp
from .placement_types import Partial, Placement, Shard

_REDUCTIONS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.SUM,
    "product": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
    "band": ReduceOp.BAND,
    "bor": ReduceOp.BOR,
    "bxor": ReduceOp.BXOR,
}


def to_replica(local: Tensor, placement: Placement, group: ProcessGroup, size: int) -> Tensor:
    """The whole of a tensor of which `local` is the part of this rank. `size`: that of the cut dimension, over all ranks of the group."""
    if group.size() == 1:
        return local
    if isinstance(placement, Shard):
        return _Gathered.apply(local, group, placement.dim, size)
    if isinstance(placement, Partial):
        return _Reduced.apply(local, group, placement.reduce_op)
    return local


def from_replica(whole: Tensor, placement: Placement, group: ProcessGroup) -> Tensor:
    """The part of this rank of a tensor that all ranks have."""
    if group.size() == 1:
        return whole
    if isinstance(placement, Shard):
        return _Cut.apply(whole, group, placement.dim)
    if isinstance(placement, Partial):
        if placement.reduce_op not in ("sum", "avg"):
            return whole
        return _Summand.apply(whole, group, placement.reduce_op)
    return whole


def used_for_parts(replica: Tensor, group: ProcessGroup) -> Tensor:
    """A replica from which each rank computes a part of a result: its gradient is the sum of those of all ranks."""
    return _Used.apply(replica, group) if replica.requires_grad else replica


def own_piece(whole: Tensor, group: ProcessGroup, dim: int) -> Tensor:
    """The piece of this rank, in memory of its own."""
    length, start = Shard.local_shard_size_and_offset(whole.size(dim), group.size(), group.rank())
    return whole.narrow(dim, start, length).clone(memory_format=contiguous_format)


def _gathered(local: Tensor, group: ProcessGroup, dim: int, size: int) -> Tensor:
    """All pieces of a tensor in one. Pieces are sent with one size, that of the largest."""
    lengths = [Shard.local_shard_size_and_offset(size, group.size(), rank)[0] for rank in range(group.size())]
    shape = list(local.shape)
    shape[dim] = lengths[0]
    padded = local
    if local.size(dim) != lengths[0]:
        padded = local.new_zeros(shape)
        padded.narrow(dim, 0, local.size(dim)).copy_(local)
    pieces = [local.new_empty(shape) for _ in lengths]
    c10d.all_gather(pieces, padded.contiguous(), group)
    return cat([piece.narrow(dim, 0, length) for piece, length in zip(pieces, lengths)], dim)


class _Gathered(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, group: ProcessGroup, dim: int, size: int) -> Tensor:
        ctx.given = group, dim
        return _gathered(local, group, dim, size)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        return _Cut.apply(cotangent, *ctx.given), None, None, None


class _Cut(Function):
    @staticmethod
    def forward(ctx: Any, whole: Tensor, group: ProcessGroup, dim: int) -> Tensor:
        ctx.given = group, dim, whole.size(dim)
        return own_piece(whole, group, dim)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        return _Gathered.apply(cotangent, *ctx.given), None, None


class _Reduced(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, group: ProcessGroup, op: str) -> Tensor:
        ctx.size, ctx.op = group.size(), op
        result = local.clone(memory_format=contiguous_format)
        c10d.all_reduce(result, _REDUCTIONS[op], group)
        return result.div_(group.size()) if op == "avg" else result

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        if ctx.op not in ("sum", "avg"):
            raise NotImplementedError(f"the gradient of a DTensor with the placement Partial({ctx.op!r})")
        return (cotangent / ctx.size if ctx.op == "avg" else cotangent), None, None


class _Summand(Function):
    @staticmethod
    def forward(ctx: Any, whole: Tensor, group: ProcessGroup, op: str) -> Tensor:
        ctx.size, ctx.op = group.size(), op
        if op == "avg":
            return whole.clone()
        return whole.clone() if group.rank() == 0 else zeros_like(whole)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        return (cotangent * ctx.size if ctx.op == "avg" else cotangent.clone()), None, None


class _Used(Function):
    @staticmethod
    def forward(ctx: Any, replica: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return replica.view_as(replica)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        return _Reduced.apply(cotangent, ctx.group, "sum"), None
