"""What a DataLoader does with data pipes: it gives them a seed, and each worker its part."""

from __future__ import annotations

from typing import Any


def is_datapipe(dataset: Any) -> bool:
    """Return whether it is one of `torch.utils.data.datapipes`, which are imported only by programs that use them."""
    return hasattr(type(dataset), "register_datapipe_as_function")


def seed_datapipe(datapipe: Any, seed: int) -> None:
    """Seed the pipes that draw numbers, before workers get copies: all of them then draw the same."""
    from ....core.generator import Generator
    from ..graph_settings import apply_random_seed

    generator = Generator()
    generator.manual_seed(seed)
    apply_random_seed(datapipe, generator)


def share_datapipe(datapipe: Any, num_workers: int, worker_id: int) -> None:
    """Let a `sharding_filter` give this worker its part."""
    from ..datapipes.iter.sharding import SHARDING_PRIORITIES
    from ..graph_settings import apply_sharding

    apply_sharding(datapipe, num_workers, worker_id, SHARDING_PRIORITIES.MULTIPROCESSING)
