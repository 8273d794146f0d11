"""Elements in another order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._shuffling import Shuffling
from ..datapipe import MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(Shuffling):
    """The elements of a pipe with indices in random order. It is iterated, because it has no order of its own."""

    def __init__(self, datapipe: Any, *, indices: list | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._shuffled: list = []

    def reset(self) -> None:
        """Begin anew."""
        if self._enabled:
            self._rng.seed(self._take_seed())
            self._shuffled = self._rng.sample(self.indices, len(self.indices))
        else:
            self._seed, self._shuffled = None, self.indices[::-1]

    def __iter__(self) -> Iterator:
        while self._shuffled:
            yield self.datapipe[self._shuffled.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
