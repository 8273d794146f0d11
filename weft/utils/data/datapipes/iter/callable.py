"""Pipes that call a function with each element."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe, lengths
from ..utils.common import check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """`fn(element)`. With `input_col`, fn gets that entry (or those) of the element; the result replaces it, or goes to
    `output_col`, where -1 is a new last entry.
    """

    def __init__(self, datapipe: Any, fn: Callable, input_col: Any = None, output_col: Any = None) -> None:
        super().__init__()
        check_unpickable_fn(fn)
        self.datapipe, self.fn, self.input_col = datapipe, fn, input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        result = (
            self.fn(*(data[each] for each in self.input_col)) if several else self.fn(data[self.input_col])
        )
        is_tuple = isinstance(data, tuple)
        data = list(data) if is_tuple else data
        if self.output_col == -1:
            data.append(result)
        elif self.output_col is not None:
            data[self.output_col] = result
        elif several:
            data[self.input_col[0]] = result
            for each in sorted(self.input_col[1:], reverse=True):
                del data[each]
        else:
            data[self.input_col] = result
        return tuple(data) if is_tuple else data

    def __iter__(self) -> Iterator:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return lengths(self, [self.datapipe])[0]


def _collate_columns(conversion: dict, sample: Any) -> Any:
    """Return a batch of data frames' rows as a named tuple, each column by its function."""
    columns = list(sample)
    unknown = [name for name in conversion if name not in columns]
    if unknown:
        raise RuntimeError(f"Conversion keys are not in the columns: {', '.join(unknown)}")
    if len({*conversion.values()} & {None}):
        raise RuntimeError("Collate (DF) DataPipe requires a function for each column")
    return namedtuple("CollateResult", columns)(
        *(conversion.get(name, list)(sample[name]) for name in columns)
    )  # type: ignore[misc] # noqa: PYI024


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches as tensors, by `default_collate` unless another function is given."""

    def __init__(
        self, datapipe: Any, conversion: Any = default_collate, collate_fn: Callable | None = None
    ) -> None:
        if collate_fn is not None:
            super().__init__(datapipe, fn=collate_fn)
        elif callable(conversion):
            super().__init__(datapipe, fn=conversion)
        else:
            import functools

            super().__init__(datapipe, fn=functools.partial(_collate_columns, conversion))
