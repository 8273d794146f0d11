"""`torch.utils.data.backward_compatibility`: a function that older programs give to DataLoaders."""

from __future__ import annotations

import warnings

from ...core.warn import user_level


def worker_init_fn(worker_id: int) -> None:
    """Do nothing, because a DataLoader itself shares the elements of data pipes among workers."""
    warnings.warn(
        "Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically applies sharding in "
        "every worker",
        stacklevel=user_level(),
    )
