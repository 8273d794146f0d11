"""`torch.distributed.nn.functional`: collectives that return new tensors, through which gradients flow.

The gradient of a collective is another one: what was sent to a rank sends its gradient back. So every rank has to call backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.layout import contiguous_format
from ...core.tensor import Tensor
from ...ops.assembly.joining import stack
from ...ops.creation.creation import empty_like, zeros_like
from .. import distributed_c10d as c10d
from .._recorded import recorded
from .._reduce_op import ReduceOp
from .._world import _canonicalize_group_rank, _world

_SUM = ReduceOp.SUM


def _group(group: Any) -> Any:
    return c10d._group_or_default_group(_world.default_pg if group is None else group)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=contiguous_format)


def _new(tensor: Tensor) -> Tensor:
    return empty_like(tensor, memory_format=contiguous_format)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src` on every rank."""
    members = _group(group)

    def run(tensor: Tensor) -> Tensor:
        result = _copied(tensor)
        c10d.broadcast(result, src, members)
        return result

    return recorded(run, lambda cotangent: gradient_of_source(cotangent, src, members), tensor)


def gradient_of_source(cotangent: Tensor, src: int, group: Any) -> Tensor:
    """The gradient of the tensor that rank `src` sent to all: the sum of all cotangents there, zeros on the others."""
    total = reduce(cotangent, src, group=group)
    is_source = group.rank() == _canonicalize_group_rank(group, src)
    return total if is_source else zeros_like(total)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank `dst`, zeros on the others."""
    members = _group(group)

    def run(tensor: Tensor) -> tuple[Tensor, ...]:
        found = [zeros_like(tensor, memory_format=contiguous_format) for _ in range(members.size())]
        is_target = members.rank() == _canonicalize_group_rank(members, dst)
        c10d.gather(tensor, found if is_target else None, dst, members)
        return tuple(found)

    return recorded(run, lambda *cotangents: scatter(cotangents, dst, members), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """On each rank its tensor of the list of rank `src`. The others give a list, too, which tells the sizes."""
    members = _group(group)

    def run(*tensors: Tensor) -> Tensor:
        result = _new(tensors[members.rank()])
        is_source = members.rank() == _canonicalize_group_rank(members, src)
        c10d.scatter(result, list(tensors) if is_source else None, src, members)
        return result

    return recorded(run, lambda cotangent: gather(cotangent, src, members), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = _SUM, group: Any = None) -> Tensor:
    """The combined tensors of all ranks on rank `dst`."""
    members = _group(group)

    def run(tensor: Tensor) -> Tensor:
        result = _copied(tensor)
        c10d.reduce(result, dst, op, members)
        return result

    return recorded(run, lambda cotangent: broadcast(cotangent, dst, members), tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = _SUM, group: Any = None) -> Tensor:
    """On each rank the combined tensors at its place of all lists."""
    members = _group(group)

    def run(*tensors: Tensor) -> Tensor:
        result = _new(output)
        c10d.reduce_scatter(result, list(tensors), op, members)
        return result

    return recorded(run, lambda cotangent: all_gather(cotangent, members), *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on every rank.

    >>> import weft as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.cat(dist.nn.functional.all_gather(x)).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    members = _group(group)

    def run(tensor: Tensor) -> tuple[Tensor, ...]:
        found = [_new(tensor) for _ in range(members.size())]
        c10d.all_gather(found, tensor, members)
        return tuple(found)

    def back(*cotangents: Tensor) -> Tensor:
        return reduce_scatter(cotangents[0], cotangents, group=members)

    return recorded(run, back, tensor)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """The tensors of all ranks in one."""
    return stack(all_gather(input_tensor, group)).view(output_tensor.shape)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """From each rank the tensor that it has for this one."""
    members = _group(group)

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        found = [_new(each) for each in output_tensor_list]
        c10d.all_to_all(found, list(tensors), members)
        return tuple(found)

    def back(*cotangents: Tensor) -> tuple[Tensor, ...]:
        return all_to_all(input_tensor_list, cotangents, members)

    return recorded(run, back, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """From each rank the part of its tensor that it has for this one."""
    members = _group(group)

    def run(tensor: Tensor) -> Tensor:
        result = _new(output)
        c10d.all_to_all_single(result, tensor.contiguous(), output_split_sizes, input_split_sizes, members)
        return result

    def back(cotangent: Tensor) -> Tensor:
        return all_to_all_single(input, cotangent, input_split_sizes, output_split_sizes, members)

    return recorded(run, back, input)


def all_reduce(tensor: Tensor, op: Any = _SUM, group: Any = None) -> Tensor:
    """The combined tensors of all ranks on every rank."""
    members = _group(group)

    def run(tensor: Tensor) -> Tensor:
        result = _copied(tensor)
        c10d.all_reduce(result, op, members)
        return result

    return recorded(run, lambda cotangent: all_reduce(cotangent, op, members), tensor)
