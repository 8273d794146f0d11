"""What a worker knows of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .seeds import numpy_seed


@dataclass
class WorkerInfo:
    """What `get_worker_info` tells a worker: which one it is, of how many, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None  # generators of its own, for a worker that is not a process
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what this worker is; None outside of the workers of a DataLoader.

    >>> from weft.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _worker_info


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return the words that NumPy's generator is seeded with in a worker."""
    return numpy_seed(base_seed, worker_id)
