"""Copies of the indices of compressed tensors as int32, for products with vectors, whose time is that of reading memory."""

from __future__ import annotations

from ...core.dtype import int32, int64
from ...core.tensor import Tensor
from .compression import are_pointers, are_within

# Entries: products with fewer find most of their operands in the cache.
_FEWEST = 100_000
# Products: a copy takes 0.6 ms and half the memory of the indices, and saves 0.4 ms of each later product (AMD Zen 4, one thread, 10^6
# entries). Programs that make a new matrix for each product get none.
_USES = 8


class NarrowIndices:
    """Counts products with the pointers and indices of one compressed matrix, and copies them as int32 at the eighth.

    The copy is dropped when somebody writes to the indices. Indices whose memory code outside of weft may write to are never copied.
    """

    __slots__ = ("uses", "versions", "copy")

    def __init__(self) -> None:
        self.uses = 0
        self.versions: tuple | None = None
        self.copy: tuple[Tensor, Tensor] | None = None

    def of(self, outer: Tensor, inner: Tensor, minors: int) -> tuple[Tensor, Tensor]:
        """The pointers and indices of a matrix, narrow if there are copies. `minors`: how many there are."""
        if inner.dtype is not int64 or not _FEWEST <= len(inner) < 2**31 or minors >= 2**31:
            return outer, inner
        storages = outer._storage, inner._storage
        versions = tuple(storage.version for storage in storages)
        # Memory that was allocated in inference mode counts no writes.
        unseen = any(storage.exposed or type(storage.version) is not int for storage in storages)
        if unseen or versions != self.versions:
            self.uses, self.versions, self.copy = 0, versions, None
        if unseen:
            return outer, inner
        copy = self.copy
        if copy is None:
            self.uses += 1
            if self.uses < _USES or not (are_pointers(outer, len(inner)) and are_within(inner, minors)):
                return outer, inner
            copy = self.copy = outer.to(int32), inner.to(int32)
        return copy
