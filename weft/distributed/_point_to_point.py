"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..core.tensor import Tensor
from ._carrier import MessageWork
from ._collectives import _check_op, _check_single_tensor
from ._group import ProcessGroup, Work
from ._world import _canonicalize_group_rank, _group_or_default_group, _member_group, get_global_rank


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Begin to send `tensor` to rank `dst`."""
    members = _member_group(group, "isend")
    if members is None:
        return None
    return _in_background(_send(members, tensor, _canonicalize_group_rank(members, dst, group_dst), tag))


def _send(members: ProcessGroup, tensor: Tensor, rank: int, tag: int) -> Work:
    _check_single_tensor(tensor, "tensor")
    return members.send([tensor], rank, tag)  # type: ignore[attr-defined]


def _in_background(work: Work) -> Work:
    """A message that makes progress while the program does something else."""
    return work.go_on() if isinstance(work, MessageWork) else work


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begin to receive a tensor from rank `src`, from any without it, into `tensor`."""
    _check_single_tensor(tensor, "tensor")
    members = _member_group(group, "irecv")
    return None if members is None else _in_background(_recv(members, tensor, src, tag, group_src))


def _recv(members: ProcessGroup, tensor: Tensor, src: int | None, tag: int, group_src: int | None) -> Work:
    if src is None and group_src is None:
        return members.recv_anysource([tensor], tag)  # type: ignore[attr-defined]
    return members.recv([tensor], _canonicalize_group_rank(members, src, group_src), tag)  # type: ignore[attr-defined]


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Send `tensor` to rank `dst`. Raises: ValueError if that is this rank."""
    members = _group_or_default_group(group) if group is None else _member_group(group, "send")
    if members is None:
        return
    rank = _canonicalize_group_rank(members, dst, group_dst)
    if rank == members.rank():
        refuse_self("destination")
    _send(members, tensor, rank, tag).wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receive a tensor from rank `src`, from any without it, into `tensor`; the rank that it came from."""
    _check_single_tensor(tensor, "tensor")
    members = _member_group(group, "irecv")
    if members is None:
        return -1
    work = _recv(members, tensor, src, tag, group_src)
    work.wait()
    if src is None and group_src is None:
        return get_global_rank(members, work.source_rank())
    return _canonicalize_group_rank(members, src, group_src, return_global=True)


def refuse_self(what: str) -> NoReturn:
    raise ValueError(
        f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process."
    )


class P2POp:
    """A message for `batch_isend_irecv`: `op` is `isend` or `irecv`."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        _check_op(op)
        _check_single_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = _group_or_default_group(group)
        self.peer = _canonicalize_group_rank(self.group, peer, group_peer, return_global=True)
        self.group_peer = _canonicalize_group_rank(self.group, peer, group_peer)
        self.tag = tag

    def __repr__(self) -> str:
        own, other = self.group.rank(), self.group_peer
        source, target = (own, other) if self.op is isend else (other, own)
        name = getattr(self.op, "__name__", "op")
        place = f"pg={self.group.group_name}, group_src={source}, group_dst={target}, "
        return f"P2POp({name} {place} {self.tensor.shape}, {self.tensor.dtype})"


def _check_p2p_op_list(p2p_op_list: Any) -> None:
    if not isinstance(p2p_op_list, list) or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``."
        )
    if any(each.group is not p2p_op_list[0].group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin several messages."""
    _check_p2p_op_list(p2p_op_list)
    p2p_op_list[0]  # PyTorch raises IndexError for an empty list
    works = [each.op(each.tensor, each.peer, each.group, each.tag) for each in p2p_op_list]
    return [work for work in works if work is not None]
