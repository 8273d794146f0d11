"""What the two batchers share: their arguments and how many batches there are."""

from __future__ import annotations

from typing import Any

from .datapipe import DataChunk, lengths


class Batching:
    """Lists of `batch_size` elements of a pipe; the last may be shorter unless `drop_last`."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __len__(self) -> int:
        (count,) = lengths(self, [self.datapipe])
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
