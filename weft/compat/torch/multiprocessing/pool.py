"""Pools of processes, `torch.multiprocessing.pool`: Python's, which take tensors as they are."""

from __future__ import annotations

import multiprocessing.pool
from typing import Any

from .queue import SimpleQueue

__all__ = ["Pool", "SimpleQueue", "clean_worker"]


class Pool(multiprocessing.pool.Pool):
    """Python's pool. Tensors go to its processes and back in shared memory."""


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """What a process of a pool runs: tasks, until there are no more; then it gives memory back."""
    import gc

    worker: Any = multiprocessing.pool.worker  # type: ignore[attr-defined]
    worker(*args, **kwargs)
    gc.collect()
