"""From indices to a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _MapDatasetFetcher:
    """Looks items up, and collates those of a list of indices."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[item] for item in index])


class _IterableDatasetFetcher:
    """Takes the next items, as many as there are indices.

    Raises: StopIteration when there are none, or with `drop_last` not enough.
    """

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool):
        self.dataset_iter = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        items = []
        for _ in index:
            try:
                items.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not items or (self.drop_last and len(items) < len(index)):
            raise StopIteration
        return self.collate_fn(items)
