"""`torch.distributed.collective_utils`: results of functions that one rank calls, or each of them, for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from ..compat.missing import module_getattr
from ._group import ProcessGroup
from ._objects import _received

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
    """The value of `rank`, or what its function returns, on every rank.

    >>> from weft.distributed.collective_utils import broadcast
    >>> broadcast(lambda: 5)
    5
    """
    if not success:
        raise RuntimeError(f"{stage_name or 'broadcast'}: rank {rank} has failed")
    return _value(data_or_fn, stage_name, "Broadcast")


def all_gather(
    data_or_fn: T | Callable[[], T], stage_name: str | None = None, pg: ProcessGroup | None = None
) -> list[T]:
    """The values of all ranks, or what their functions return, on every rank."""
    return [_value(data_or_fn, stage_name, "all_gather")]


def _value(data_or_fn: Any, stage_name: str | None, step: str) -> Any:
    if not callable(data_or_fn):
        return data_or_fn
    try:
        return data_or_fn()
    except Exception as error:
        stage = f"{stage_name}: " if stage_name else ""
        raise RuntimeError(f"{stage}{step} failed: {error}") from error


def all_gather_object_enforce_type(
    pg: ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """`all_gather_object` of objects that must be of one type."""
    object_list[0] = _received(obj)
    if not type_checker(object_list[0], obj):
        raise TypeError(f"the objects have several types: {type(obj)} and {type(object_list[0])}")


__getattr__ = module_getattr(__name__)
