"""`torch.distributed.collective_utils`: results of functions that one rank calls, or each of them, for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from ._group import ProcessGroup
from ._objects import all_gather_object, broadcast_object_list

__all__ = ["SyncPayload", "broadcast", "all_gather", "all_gather_object_enforce_type"]

T = TypeVar("T")


class SyncPayload(NamedTuple, Generic[T]):
    """A value that a rank sends, or how it failed."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def broadcast(
    data_or_fn: T | Callable[[], T],
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: ProcessGroup | None = None,
) -> T:
    """The value of `rank` in the group `pg`, or what its function returns, on every rank. Without a group there is this process alone.

    Raises: RuntimeError on all ranks if `rank` has failed.

    >>> from weft.distributed.collective_utils import broadcast
    >>> broadcast(lambda: 5)
    5
    """
    sent = SyncPayload[Any](stage_name, success, None)
    if success and (pg is None or pg.rank() == rank):
        sent = _tried(data_or_fn, stage_name)
    if pg is not None:
        objects = [sent]
        broadcast_object_list(objects, group=pg, group_src=rank)
        (sent,) = objects
    if not sent.success:
        reason = f": {sent.exception}" if sent.exception is not None else ""
        raise RuntimeError(f"{stage_name or 'broadcast'}: rank {rank} has failed{reason}") from sent.exception
    return sent.payload


def all_gather(
    data_or_fn: T | Callable[[], T], stage_name: str | None = None, pg: ProcessGroup | None = None
) -> list[T]:
    """The values of all ranks, or what their functions return, on every rank.

    Raises: RuntimeError on all ranks if one has failed.
    """
    gathered = [_tried(data_or_fn, stage_name)]
    if pg is not None:
        own, gathered = gathered[0], [SyncPayload[Any](None, False, None)] * pg.size()
        all_gather_object_enforce_type(pg, gathered, own)
    failed = {rank: each.exception for rank, each in enumerate(gathered) if not each.success}
    if failed:
        reasons = ", ".join(f"rank {rank}: {error}" for rank, error in failed.items())
        raise RuntimeError(f"{stage_name or 'all_gather'} failed: {reasons}") from next(iter(failed.values()))
    return [each.payload for each in gathered]


def _tried(data_or_fn: Any, stage_name: str | None) -> SyncPayload[Any]:
    """A value, or what a function returns."""
    try:
        return SyncPayload(stage_name, True, data_or_fn() if callable(data_or_fn) else data_or_fn)
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def all_gather_object_enforce_type(
    pg: ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """`all_gather_object` of objects that must be of one type. Raises: TypeError otherwise."""
    all_gather_object(object_list, obj, group=pg)
    for rank, each in enumerate(object_list):
        if not type_checker(each, obj):
            raise TypeError(
                f"the objects have several types: {type(obj)} on rank {pg.rank()}, {type(each)} on rank {rank}"
            )
