"""Collectives of Python objects. What a rank receives is a copy, through pickle."""

from __future__ import annotations

import pickle
from typing import Any

from ._collectives import _root, _validate_output_list_for_rank
from ._gloo import _check_root
from ._group import ProcessGroup
from ._world import _canonicalize_group_rank, _member_group


def _received(obj: Any) -> Any:
    return pickle.loads(pickle.dumps(obj))


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the objects of all ranks into `object_list` on every rank."""
    if _member_group(group, "all_gather_object") is not None:
        object_list[0] = _received(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Write the objects of all ranks into `object_gather_list` on rank `dst` (0 by default)."""
    members = _member_group(group, "gather_object")
    if members is None:
        return
    root = _root(members, dst, group_dst)
    _validate_output_list_for_rank(members.rank(), root, object_gather_list)
    _check_root("gather", root)
    assert object_gather_list is not None
    object_gather_list[0] = _received(obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any | None = None,
    group_src: int | None = None,
) -> None:
    """Write the objects of rank `src` (0 by default) into `object_list` on every other rank."""
    members = _member_group(group, "broadcast_object_list")
    if members is None:
        return
    _check_root("broadcast", _root(members, src, group_src))
    pickle.dumps(object_list)  # objects that cannot be sent are an error on one rank, too


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Write an object of `scatter_object_input_list` of rank `src` into the first place of the output list."""
    members = _member_group(group, "scatter_object_list")
    if members is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = _root(members, src, group_src)
    _check_root("scatter", root)
    if scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    if len(scatter_object_input_list) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_object_input_list)}. "
            "Input list size should be 1, same as size of the process group."
        )
    scatter_object_output_list[0] = _received(scatter_object_input_list[0])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to another rank. Raises: ValueError for this rank itself, which is the only one."""
    members = _member_group(group, "send_object_list")
    if members is not None:
        _refuse_self(members, _canonicalize_group_rank(members, dst, group_dst), "destination")


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive objects from another rank. Raises: ValueError for this rank itself, which is the only one."""
    members = _member_group(group, "recv_object_list")
    if members is None:
        return -1
    if src is None and group_src is None:
        raise RuntimeError("recv from any rank: the group has one rank, so that nobody sends")
    _refuse_self(members, _canonicalize_group_rank(members, src, group_src), "source")
    return -1


def _refuse_self(group: ProcessGroup, rank: int, what: str) -> None:
    if rank == group.rank():
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process."
        )
    raise ValueError(f"Invalid {what} rank: {rank}: the group has one rank, 0")
