"""Batches of elements."""

from __future__ import annotations

from .._batching import Batching
from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(Batching, MapDataPipe[DataChunk]):
    """Lists of `batch_size` elements; the last may be shorter unless `drop_last`."""

    def __getitem__(self, index: int) -> DataChunk:
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        if first >= last or (self.drop_last and last - first < self.batch_size):
            raise IndexError("Index out of bound.")
        return self.wrapper_class([self.datapipe[each] for each in range(first, last)])
