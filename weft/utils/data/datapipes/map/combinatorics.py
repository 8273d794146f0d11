"""Elements in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ..... import empty, int64
from ..datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe):
    """The elements of a pipe with indices in random order. It is iterated, because it has no order of its own."""

    def __init__(self, datapipe: Any, *, indices: list | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled: list = []

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switch it on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iteration; without one it is drawn from the default generator."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Begin anew."""
        if self._enabled and self._seed is None:
            self._seed = int(empty((), dtype=int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled = (
            self._rng.sample(self.indices, len(self.indices)) if self._enabled else self.indices[::-1]
        )

    def __iter__(self) -> Iterator:
        while self._shuffled:
            yield self.datapipe[self._shuffled.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
