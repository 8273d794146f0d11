"""An old name."""

from __future__ import annotations

import warnings


def worker_init_fn(worker_id: int) -> None:
    """Did what a DataLoader does by itself: share the elements of data pipes among workers."""
    warnings.warn(
        "Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically applies sharding in "
        "every worker",
        stacklevel=2,
    )
