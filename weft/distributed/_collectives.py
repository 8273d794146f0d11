"""The collectives, with PyTorch's checks of arguments. The backend of the group carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from ..core.tensor import Tensor
from ._group import ProcessGroup, Work
from ._options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ._reduce_op import RedOpType, ReduceOp
from ._repeats import remember_all_gather, remember_in_place, repeated
from ._world import _canonicalize_group_rank, _group_or_default_group, _member_group

_SUM = ReduceOp.SUM


def _check_single_tensor(param: Any, param_name: str) -> None:
    if not isinstance(param, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{param_name}` of type torch.Tensor "
            f"but got {type(param)} instead."
        )


def _check_tensor_list(param: Any, param_name: str) -> None:
    if not isinstance(param, list):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{param_name}` of type List[torch.Tensor] "
            f"but got {type(param)} instead."
        )
    for each in param:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"Invalid function argument. Expected parameter `{param_name}` of type List[torch.Tensor] "
                f"but got an element of {type(each)}."
            )


def _ensure_all_tensors_same_dtype(*tensors: Any) -> None:
    """Raises: ValueError unless all tensors have one dtype, or complex numbers of it."""
    first = None
    for each in tensors:
        for tensor in [each] if isinstance(each, Tensor) else each:
            first = first or tensor.dtype
            if tensor.dtype.to_real() != first.to_real():
                raise ValueError(
                    f"Invalid usage of tensors with different dtypes: found {first} and {tensor.dtype}"
                )


def _check_op(op: Any) -> None:
    from ._point_to_point import irecv, isend

    if op not in (isend, irecv):
        raise ValueError(
            "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
        )


def _checked_op(op: Any) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise TypeError(f"a reduction has to be a torch.distributed.ReduceOp, not {op!r}")
    return op


def supports_complex(reduceOp: ReduceOp | RedOpType) -> bool:  # noqa: N803 (PyTorch's name)
    """Whether the reduction works for complex numbers.

    >>> import weft as torch
    >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.MAX)
    False
    """
    refused = (
        RedOpType.MAX,
        RedOpType.MIN,
        RedOpType.PRODUCT,
        RedOpType.BAND,
        RedOpType.BOR,
        RedOpType.BXOR,
    )
    return getattr(reduceOp, "op", reduceOp) not in refused


def _check_complex(name: str, op: Any, tensors: Sequence[Tensor]) -> None:
    if any(tensor.is_complex() for tensor in tensors) and not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")


Chosen = TypeVar("Chosen")


def _options(kind: Callable[[], Chosen], async_op: bool, **values: Any) -> Chosen:
    """Options of a collective, with some values set."""
    options: Any = kind()
    options.asyncOp = async_op
    for name, value in values.items():
        setattr(options, name, value)
    return options


def _finish(work: Any, async_op: bool) -> Work | None:
    """Return the Work if the caller asked for it, else wait for it and return None."""
    if async_op or work is None:
        return work
    work.wait()
    return None


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Write the tensor of rank `src` into `tensor` on every rank."""
    call = "broadcast", getattr(tensor, "spec", None), src, group_src
    if not async_op and (again := repeated(group, call)) and again(tensor):
        return None
    members = _group_or_default_group(group) if not _outside(group, "broadcast") else None
    if members is None:
        return None
    root = _canonicalize_group_rank(members, src, group_src)
    _check_single_tensor(tensor, "tensor")
    options = _options(BroadcastOptions, async_op, rootRank=root)
    work = _finish(members.broadcast([tensor], options), async_op)  # type: ignore[attr-defined]
    remember_in_place(members, call, tensor, "broadcast", root)
    return work


def _outside(group: Any, name: str) -> bool:
    return _member_group(group, name) is None


def all_reduce(
    tensor: Tensor, op: Any = _SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Combine the tensors of all ranks and write the result into `tensor` on every rank.

    >>> import weft as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.ones(2)
    >>> dist.all_reduce(x, op=dist.ReduceOp.SUM)
    >>> x
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    call = "all_reduce", getattr(tensor, "spec", None), op
    if not async_op and (again := repeated(group, call)) and again(tensor):
        return None
    _check_single_tensor(tensor, "tensor")
    members = _member_group(group, "all_reduce")
    if members is None:
        return None
    _check_complex("all_reduce", op, [tensor])
    options = _options(AllreduceOptions, async_op, reduceOp=_checked_op(op))
    work = _finish(members.allreduce([tensor], options), async_op)  # type: ignore[attr-defined]
    if isinstance(op, RedOpType) and op is not RedOpType.AVG:  # an average is a sum and a division
        remember_in_place(members, call, tensor, "reduce", op, None)
    return work


def all_reduce_coalesced(
    tensors: Any, op: Any = _SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """`all_reduce` of several tensors at once."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    _ensure_all_tensors_same_dtype(tensors)
    members = _member_group(group, "all_reduce_coalesced")
    if members is None:
        return None
    _check_complex("all_reduce", op, tensors)
    options = _options(AllreduceCoalescedOptions, async_op, reduceOp=_checked_op(op))
    work = members.allreduce_coalesced(tensors, options)  # type: ignore[attr-defined]
    if async_op:
        return work.get_future()
    work.wait()
    return None


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = _SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Combine the tensors of all ranks and write the result into `tensor` on rank `dst`."""
    members = _member_group(group, "reduce")
    if members is None:
        return None
    root = _canonicalize_group_rank(members, dst, group_dst)
    _check_single_tensor(tensor, "tensor")
    options = _options(ReduceOptions, async_op, reduceOp=_checked_op(op), rootRank=root)
    return _finish(members.reduce([tensor], options), async_op)  # type: ignore[attr-defined]


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Write the tensors of all ranks into `tensor_list` on every rank."""
    call = "all_gather", getattr(tensor, "spec", None)
    if not async_op and (again := repeated(group, call)) and again(tensor_list, tensor):
        return None
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _ensure_all_tensors_same_dtype(tensor_list, tensor)
    members = _member_group(group, "all_gather")
    if members is None:
        return None
    options = _options(AllgatherOptions, async_op)
    work = _finish(members.allgather([tensor_list], [tensor], options), async_op)  # type: ignore[attr-defined]
    remember_all_gather(members, call, tensor_list, tensor)
    return work


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Write the tensors of all ranks into one tensor, one after the other, on every rank."""
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    members = _member_group(group, "all_gather_into_tensor")
    if members is None:
        return None
    options = _options(AllgatherOptions, async_op)
    return _finish(members._allgather_base(output_tensor, input_tensor, options), async_op)  # type: ignore[attr-defined]


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """As `all_gather_into_tensor`."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


_all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """`all_gather` of several tensors; `output_tensor_lists` has one list for each rank."""
    members = _member_group(group, "all_gather_coalesced")
    if members is None:
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError(
            f"Invalid function argument: output_tensor_lists should be a list, not {output_tensor_lists}"
        )
    for each in output_tensor_lists:
        _check_tensor_list(each, "output_tensor_lists")
    options = _options(AllgatherOptions, async_op)
    work = members.allgather_coalesced(output_tensor_lists, input_tensor_list, options)  # type: ignore[attr-defined]
    if async_op:
        return work.get_future()
    work.wait()
    return None


def _validate_output_list_for_rank(my_rank: int, dst: int, gather_list: Any) -> None:
    if dst == my_rank and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if dst != my_rank and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Write the tensors of all ranks into `gather_list` on rank `dst` (0 by default)."""
    _check_single_tensor(tensor, "tensor")
    _check_tensor_list(gather_list or [], "gather_list")
    _ensure_all_tensors_same_dtype(tensor, gather_list or [])
    members = _member_group(group, "gather")
    if members is None:
        return None
    root = _root(members, dst, group_dst)
    _validate_output_list_for_rank(members.rank(), root, gather_list)
    options = _options(GatherOptions, async_op, rootRank=root)
    outputs = [gather_list] if root == members.rank() else []
    return _finish(members.gather(outputs, [tensor], options), async_op)  # type: ignore[attr-defined]


def _root(members: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The rank in the group of the process that gathers or scatters: the first one by default."""
    if rank is None and group_rank is None:
        return 0
    return _canonicalize_group_rank(members, rank, group_rank)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Write the tensors of `scatter_list` of rank `src` (0 by default) into `tensor`: to each rank its own."""
    _check_single_tensor(tensor, "tensor")
    _check_tensor_list(scatter_list or [], "scatter_list")
    _ensure_all_tensors_same_dtype(tensor, scatter_list or [])
    members = _member_group(group, "scatter")
    if members is None:
        return None
    root = _root(members, src, group_src)
    if root == members.rank() and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if root != members.rank() and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    options = _options(ScatterOptions, async_op, rootRank=root)
    inputs = [scatter_list] if scatter_list else []
    return _finish(members.scatter([tensor], inputs, options), async_op)  # type: ignore[attr-defined]


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = _SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Combine the lists of all ranks, and write to each rank the result at its place."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _ensure_all_tensors_same_dtype(output, input_list)
    members = _member_group(group, "reduce_scatter")
    if members is None:
        return None
    options = _options(ReduceScatterOptions, async_op, reduceOp=_checked_op(op))
    return _finish(members.reduce_scatter([output], [input_list], options), async_op)  # type: ignore[attr-defined]


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = _SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """`reduce_scatter` of one tensor, of which each rank gets its part."""
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    members = _member_group(group, "reduce_scatter_tensor")
    if members is None:
        return None
    options = _options(ReduceScatterOptions, async_op, reduceOp=_checked_op(op))
    return _finish(members._reduce_scatter_base(output, input, options), async_op)  # type: ignore[attr-defined]


def reduce_scatter_single(
    output: Tensor, input: Tensor, op: Any = _SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """As `reduce_scatter_tensor`."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


_reduce_scatter_base = reduce_scatter_tensor


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send to each rank one tensor of `input_tensor_list`; write what comes into `output_tensor_list`."""
    members = _member_group(group, "all_to_all")
    if members is None:
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _ensure_all_tensors_same_dtype(output_tensor_list, input_tensor_list)
    options = _options(AllToAllOptions, async_op)
    return _finish(members.alltoall(output_tensor_list, input_tensor_list, options), async_op)  # type: ignore[attr-defined]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send to each rank a part of `input`; write what comes into `output`, one part after the other."""
    members = _member_group(group, "all_to_all_single")
    if members is None:
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _ensure_all_tensors_same_dtype(output, input)
    options = _options(AllToAllOptions, async_op)
    work = members.alltoall_base(output, input, output_split_sizes or [], input_split_sizes or [], options)  # type: ignore[attr-defined]
    return _finish(work, async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Any:
    """Return when all ranks have come here."""
    members = _member_group(group, "barrier")
    if members is None:
        return None
    options = _options(BarrierOptions, async_op)
    if timeout is not None:
        options.timeout = timeout
    return _finish(members.barrier(options), async_op)  # type: ignore[attr-defined]


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """As `barrier`. Raises: RuntimeError that says which ranks did not come within `timeout`."""
    members = _member_group(group, "monitored_barrier")
    if members is not None:
        members.monitored_barrier(timeout, wait_all_ranks=wait_all_ranks)  # type: ignore[attr-defined]


class _CoalescingManager:
    """The collectives that were begun within `_coalescing_manager`."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any = None) -> None:
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Collectives that may be sent together. They are carried out where they stand."""
    _group_or_default_group(group)
    yield _CoalescingManager()
