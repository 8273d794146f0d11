"""Pipes that select elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, check_unpickable_fn, validate_input_col

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The elements for which `filter_fn` is True; with `input_col` it gets that entry (or those) of the element."""

    def __init__(self, datapipe: Any, filter_fn: Callable, input_col: Any = None) -> None:
        super().__init__()
        check_unpickable_fn(filter_fn)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col
        validate_input_col(filter_fn, input_col)

    def _apply_filter_fn(self, data: Any) -> bool:
        if self.input_col is None:
            return self.filter_fn(data)
        if isinstance(self.input_col, (list, tuple)):
            return self.filter_fn(*(data[each] for each in self.input_col))
        return self.filter_fn(data[self.input_col])

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            wanted = self._apply_filter_fn(data)
            if not isinstance(wanted, bool):
                raise ValueError(
                    f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(wanted)}"
                )
            if wanted:
                yield data
            else:
                StreamWrapper.close_streams(data)
