"""What the two shufflers share: a switch, and the seed of the next iteration."""

from __future__ import annotations

import random
from typing import Any

from .... import empty, int64
from .datapipe import IterDataPipe


class Shuffling(IterDataPipe):
    """Subclasses use `_rng`, seeded with `_take_seed()`, in `reset`."""

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Any:
        """Switch it on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Any:
        """The seed of the next iteration; without one it is drawn from the default generator."""
        self._seed = seed
        return self

    def _take_seed(self) -> int:
        """Return the seed that was set, which serves one iteration, or a number drawn from the default generator."""
        seed, self._seed = self._seed, None
        return int(empty((), dtype=int64).random_().item()) if seed is None else seed
