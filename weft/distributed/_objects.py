"""Collectives of Python objects, which pickle turns into bytes. What a rank receives is a copy."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from ..core.dtype import int64, uint8
from ..core.tensor import Tensor
from ..interop.numpy import frombuffer
from ..ops.creation.creation import empty
from ..ops.creation.from_data import tensor
from ._collectives import (
    _root,
    _validate_output_list_for_rank,
    all_gather,
    broadcast,
    gather,
    scatter,
)
from ._group import ProcessGroup
from ._point_to_point import recv, refuse_self, send
from ._world import _canonicalize_group_rank, _member_group, get_global_rank


def _packed(obj: Any) -> Tensor:
    """The bytes of an object."""
    return frombuffer(bytearray(pickle.dumps(obj)), dtype=uint8)


def _unpacked(content: Tensor) -> Any:
    return pickle.loads(content.numpy().tobytes())


def _bytes(count: int) -> Tensor:
    return empty(count, dtype=uint8)


def _sizes(numbers: Sequence[int]) -> Tensor:
    return tensor(list(numbers), dtype=int64)


def _padded(content: Tensor, size: int) -> Tensor:
    whole = _bytes(size)
    whole[: content.numel()] = content
    return whole


def _sizes_of_all(content: Tensor, members: ProcessGroup) -> list[int]:
    """How many bytes each rank has."""
    sizes = [_sizes([0]) for _ in range(members.size())]
    all_gather(sizes, _sizes([content.numel()]), group=members)
    return [int(size) for size in sizes]


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """Write the objects of all ranks into `object_list` on every rank."""
    members = _member_group(group, "all_gather_object")
    if members is None:
        return
    content = _packed(obj)
    sizes = _sizes_of_all(content, members)
    received = [_bytes(max(sizes)) for _ in sizes]
    all_gather(received, _padded(content, max(sizes)), group=members)
    for rank, (whole, size) in enumerate(zip(received, sizes)):
        object_list[rank] = _unpacked(whole[:size])


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
    content = _packed(obj)
    sizes = _sizes_of_all(content, members)
    is_root = members.rank() == root
    received = [_bytes(max(sizes)) for _ in sizes] if is_root else None
    gather(_padded(content, max(sizes)), received, group=members, group_dst=root)
    if received is not None and object_gather_list is not None:
        for rank, (whole, size) in enumerate(zip(received, sizes)):
            object_gather_list[rank] = _unpacked(whole[:size])


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
    root = _root(members, src, group_src)
    if members.rank() == root:
        contents = [_packed(obj) for obj in object_list]
        sizes = _sizes([content.numel() for content in contents])
        broadcast(sizes, group=members, group_src=root)
        broadcast(_joined(contents), group=members, group_src=root)
        return
    sizes = _sizes([0] * len(object_list))
    broadcast(sizes, group=members, group_src=root)
    whole = _bytes(int(sizes.sum()))
    broadcast(whole, group=members, group_src=root)
    object_list[:] = [_unpacked(part) for part in whole.split(sizes.tolist())]


def _joined(contents: Sequence[Tensor]) -> Tensor:
    return frombuffer(bytearray(b"").join(each.numpy().tobytes() for each in contents), dtype=uint8)


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
    is_root = members.rank() == root
    contents: list[Tensor] = []
    if is_root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        if len(scatter_object_input_list) != members.size():
            raise RuntimeError(
                f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_object_input_list)}. "
                f"Input list size should be {members.size()}, same as size of the process group."
            )
        contents = [_packed(obj) for obj in scatter_object_input_list]
    sizes = _sizes([content.numel() for content in contents] or [0] * members.size())
    broadcast(sizes, group=members, group_src=root)
    longest = int(sizes.max())
    whole = _bytes(longest)
    padded = [_padded(content, longest) for content in contents] or None
    scatter(whole, padded, group=members, group_src=root)
    scatter_object_output_list[0] = _unpacked(whole[: int(sizes[members.rank()])])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any | None = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to another rank. Raises: ValueError for this rank itself."""
    members = _member_group(group, "send_object_list")
    if members is None:
        return
    rank = _canonicalize_group_rank(members, dst, group_dst)
    if rank == members.rank():
        refuse_self("destination")
    contents = [_packed(obj) for obj in object_list]
    send(_sizes([content.numel() for content in contents]), group=members, group_dst=rank)
    send(_joined(contents), group=members, group_dst=rank)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any | None = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive as many objects as `object_list` has, from rank `src` or from any; the rank that they came from.

    Raises: ValueError for this rank itself.
    """
    members = _member_group(group, "recv_object_list")
    if members is None:
        return -1
    known = src is not None or group_src is not None
    rank = _canonicalize_group_rank(members, src, group_src) if known else None
    if rank == members.rank():
        refuse_self("source")
    sizes = _sizes([0] * len(object_list))
    source = recv(sizes, group=members, group_src=rank)
    own = _canonicalize_group_rank(members, source)
    whole = _bytes(int(sizes.sum()))
    recv(whole, group=members, group_src=own)
    object_list[:] = [_unpacked(part) for part in whole.split(sizes.tolist())]
    return get_global_rank(members, own)
