"""`torch.distributed.nn.functional`: collectives that return new tensors, through which gradients flow.

Over one rank each of them is a copy, and its gradient is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compat.missing import module_getattr
from ...core.layout import contiguous_format
from ...core.tensor import Tensor
from .. import distributed_c10d as c10d
from .._reduce_op import ReduceOp
from .._world import _world

_SUM = ReduceOp.SUM


def _group(group: Any) -> Any:
    return c10d._group_or_default_group(_world.default_pg if group is None else group)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=contiguous_format)


def _like(out: Tensor, tensor: Tensor) -> Tensor:
    """A copy of `tensor` in the place of `out`, which must have its size."""
    if out.shape != tensor.shape:
        raise RuntimeError(f"the output has the size {tuple(out.shape)}, the input {tuple(tensor.shape)}")
    return _copied(tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src` on every rank."""
    with_checks = tensor.detach().clone()
    c10d.broadcast(with_checks, src, _group(group))
    return _copied(tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank `dst`."""
    _group(group)
    return (_copied(tensor),)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """On each rank its tensor of the list of rank `src`."""
    _group(group)
    (tensor,) = tensors
    return _copied(tensor)


def reduce(tensor: Tensor, dst: int, op: Any = _SUM, group: Any = None) -> Tensor:
    """The combined tensors of all ranks on rank `dst`."""
    c10d.reduce(tensor.detach().clone(), dst, op, _group(group))
    return _copied(tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = _SUM, group: Any = None) -> Tensor:
    """On each rank the combined tensors at its place of all lists."""
    _group(group)
    (tensor,) = input_list
    return _like(output, tensor)


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
    _group(group)
    return (_copied(tensor),)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """The tensors of all ranks in one."""
    _group(group)
    return _like(output_tensor, input_tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """From each rank the tensor that it has for this one."""
    _group(group)
    return tuple(_like(*pair) for pair in zip(output_tensor_list, input_tensor_list, strict=True))


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Tensor:
    """From each rank the part of its tensor that it has for this one."""
    _group(group)
    return _like(output, input)


def all_reduce(tensor: Tensor, op: Any = _SUM, group: Any = None) -> Tensor:
    """The combined tensors of all ranks on every rank."""
    c10d.all_reduce(tensor.detach().clone(), op, _group(group))
    return _copied(tensor)


__getattr__ = module_getattr(__name__)
