"""Batches and groups of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._batching import Batching
from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import check_unpickable_fn

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(Batching, IterDataPipe[DataChunk]):
    """Lists of `batch_size` elements; the last may be shorter unless `drop_last`."""

    def __iter__(self) -> Iterator[DataChunk]:
        batch: list = []
        for each in self.datapipe:
            batch.append(each)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The elements of batches, `unbatch_level` levels deep; -1: all levels."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator:
        for each in self.datapipe:
            yield from self._dive(each, unbatch_level=self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        is_batch = isinstance(element, (list, DataChunk))
        if unbatch_level == 0 or unbatch_level == -1 and not is_batch:
            yield element
        elif is_batch:
            for each in element:
                yield from self._dive(each, unbatch_level if unbatch_level == -1 else unbatch_level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[DataChunk]):
    """Lists of elements with the same `group_key_fn(element)`.

    A group is given once it has `group_size` elements, the others at the end. If the buffer is full, the largest is given.
    """

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        check_unpickable_fn(group_key_fn)
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size, self.drop_remaining = buffer_size, group_size, drop_remaining
        self.guaranteed_group_size = (
            group_size if group_size is not None and buffer_size is not None else None
        )
        if group_size is not None and buffer_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise ValueError(
                    "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
                )
            self.guaranteed_group_size = guaranteed_group_size
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._groups: dict[Any, list] = {}
        self._count = 0

    def _remove_biggest_key(self) -> Any:
        key = max(self._groups, key=lambda each: len(self._groups[each]))
        group = self._groups.pop(key)
        self._count -= len(group)
        guaranteed = self.guaranteed_group_size
        if guaranteed is not None and len(group) < guaranteed and not self.drop_remaining:
            raise RuntimeError(f"Failed to group items: {group}")
        if guaranteed is None or len(group) >= guaranteed:
            return self._as_given(key, group)
        return None

    def _as_given(self, key: Any, group: list) -> Any:
        return (key, DataChunk(group)) if self.keep_key else DataChunk(group)

    def __iter__(self) -> Iterator:
        for each in self.datapipe:
            key = self.group_key_fn(each)
            group = self._groups.setdefault(key, [])
            group.append(each)
            self._count += 1
            if self.group_size is not None and len(group) == self.group_size:
                self._count -= len(self._groups.pop(key))
                yield self._as_given(key, group)
            if self._count == self.max_buffer_size and (largest := self._remove_biggest_key()) is not None:
                yield largest
        for key in tuple(self._groups):
            group = self._groups.pop(key)
            self._count -= len(group)
            yield self._as_given(key, group)
