"""The memory that nodes of the autograd graph keep for backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..autograd.saved import RELEASED, Packed, Saved, SavedDual, SavedOutputs
from ..core.storage import Storage
from ..core.tensor import Tensor


def saved_by(node: Any) -> dict[Storage, int]:
    """The storages that a node keeps, and how many bytes of each its saved tensors have."""
    kept: dict[Storage, int] = {}
    entries = getattr(node, "_saved", None)
    for storage, nbytes in _entries(None if entries is RELEASED else entries):
        kept[storage] = kept.get(storage, 0) + nbytes
    return {storage: min(nbytes, storage.nbytes_) for storage, nbytes in kept.items()}


def is_released(node: Any) -> bool:
    """Whether a backward pass has run the node and dropped what it had saved."""
    return getattr(node, "_saved", None) is RELEASED


def _entries(entry: Any) -> Iterator[tuple[Storage, int]]:
    if type(entry) is Saved:
        yield entry.storage, entry.spec.nbytes
    elif type(entry) is SavedDual:
        yield from _entries(entry.saved)
    elif type(entry) is Packed:
        yield from _entries(entry.value)
    elif isinstance(entry, Tensor):
        yield entry._storage, entry.spec.nbytes
    elif isinstance(entry, (tuple, list, SavedOutputs)):
        for each in entry:
            yield from _entries(each)
