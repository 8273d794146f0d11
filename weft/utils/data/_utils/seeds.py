"""Seeds of loaders and of their workers."""

from __future__ import annotations

import random

import numpy as np

from ....core.generator import Generator
from ....ops.creation.from_data import tensor
from ....ops.creation.random import manual_seed


def draw_seed(generator: Generator | None) -> int:
    """Return a seed in [0, 2**63): one draw of a generator, for None of the default one."""
    return int(tensor(0).random_(generator=generator).item())


def seed_worker(base_seed: int, worker_id: int) -> int:
    """Seed the generators of Python, weft and NumPy in a worker. Returns the seed of the first two."""
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(numpy_seed(base_seed, worker_id))
    return seed


def numpy_seed(base_seed: int, worker_id: int) -> list[int]:
    """Four words of 32 bits. They are mixed, because NumPy's legacy generator is alike for neighbouring seeds."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()
