"""Going on where an iteration stopped."""

from __future__ import annotations

import itertools
from typing import Any

from ..datapipe import IterDataPipe


def _simple_graph_snapshot_restoration(datapipe: IterDataPipe, n_iterations: int, rng: Any = None) -> None:
    """Let the next iterator of a pipe begin after so many elements."""
    iterator = iter(datapipe)
    for _ in itertools.islice(iterator, n_iterations):
        pass
    datapipe._snapshot_iterator = iterator  # type: ignore[attr-defined]
