"""The sampler of one process among several that share a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.generator import Generator
from ...ops.creation.random import randperm
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index of an order that all processes share, from the `rank`-th on.

    Indices are repeated, or with `drop_last` left out, so that all processes have equally many. `set_epoch` changes the
    order: without it every pass has the same.

    Raises: ValueError if there is no such rank, RuntimeError if the numbers are not given and no group can tell them.

    >>> from weft.utils.data import DistributedSampler
    >>> [list(DistributedSampler("abcde", 2, rank, shuffle=False)) for rank in range(2)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = _process_group().get_world_size()
        if rank is None:
            rank = _process_group().get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        # What cannot be shared out evenly is dropped, or filled up.
        count = len(dataset)
        self.num_samples = count // num_replicas if drop_last else -(-count // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(count, generator=generator).tolist()
        else:
            order = list(range(count))
        if not self.drop_last and count:
            order *= -(-self.total_size // count)
        order = order[: self.total_size]
        if len(order) != self.total_size:
            raise AssertionError(
                f"Number of indices ({len(order)}) does not match total_size ({self.total_size})"
            )
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next pass; every process has to choose the same."""
        self.epoch = epoch


def _process_group() -> Any:
    from ... import distributed

    if not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return distributed
