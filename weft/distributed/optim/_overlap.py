"""Steps of ZeroRedundancyOptimizer within a backward pass: which rank updates which parameters of each bucket of DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.tensor import Tensor
from .._coalesced import CoalescedBroadcast
from .._grad_bucket import GradBucket
from .._group import ProcessGroup
from .utils import functional_optim_map


class Share(NamedTuple):
    """Parameters of a bucket that one rank updates; `start` is the place of the first one in the bucket."""

    rank: int
    start: int
    params: list[Tensor]


class Overlap:
    """Updates the parameters of buckets, once it has seen all buckets.

    splits: whether several ranks may share a bucket, so that all have about as many elements.

    Raises: ValueError for an optimizer that has no functional one.
    """

    def __init__(self, group: ProcessGroup, optimizer_class: Any, defaults: dict[str, Any]) -> None:
        if optimizer_class not in (*functional_optim_map, *functional_optim_map.values()):
            raise ValueError(
                "Using `ddp_with_overlap=True` requires using a functional optimizer, but there is no supported functional optimizer "
                f"equivalent for {optimizer_class}"
            )
        kind = functional_optim_map.get(optimizer_class, optimizer_class)
        self.group = group
        self.optimizer = kind([], **defaults, _allow_empty_param_list=True)
        self.splits = False
        self._buckets: list[list[Tensor]] = []
        self._shares: list[list[Share]] = []  # of each bucket; none until all buckets are known
        self._on_their_way: list[CoalescedBroadcast] = []

    @property
    def is_ready(self) -> bool:
        """Whether all buckets are known, so that the optimizer updates parameters."""
        return bool(self._shares)

    def note(self, bucket: GradBucket) -> None:
        """Note a bucket of the first pass after the buckets have got their final order. With the next pass, updates begin."""
        if bucket.index() == 0 and self._buckets:
            divide = _split if self.splits else _in_turns
            self._shares = divide(self._buckets, self.group.size())
        elif not self.is_ready:
            self._buckets.append(bucket.parameters())

    def update(self, bucket: GradBucket) -> None:
        """Update the parameters of this rank in a bucket, whose gradients are averaged."""
        gradients = bucket.gradients()
        for share in self._shares[bucket.index()]:
            if share.rank == self.group.rank():
                for param, gradient in zip(share.params, gradients[share.start :]):
                    self.optimizer.step_param(param, gradient)

    def send(self, bucket: GradBucket) -> None:
        """Begin to send the parameters of a bucket from the ranks that have updated them."""
        for share in sorted(self._shares[bucket.index()]):
            self._on_their_way.append(CoalescedBroadcast(self.group, share.params, share.rank))

    def finish(self) -> None:
        """Return when the parameters of all ranks are there."""
        for each in self._on_their_way:
            each.wait()
        self._on_their_way.clear()


def _size(params: Sequence[Tensor]) -> int:
    return sum(each.numel() for each in params)


def _in_turns(buckets: Sequence[list[Tensor]], ranks: int) -> list[list[Share]]:
    """Whole buckets, for one rank after the other."""
    return [[Share(index % ranks, 0, params)] for index, params in enumerate(buckets)]


def _split(buckets: Sequence[list[Tensor]], ranks: int) -> list[list[Share]]:
    """Runs of parameters smaller than the part of a rank if all had as much, the small buckets first, each for the rank that has least so far.

    A rank has a second run of a bucket only if all ranks have one. PyTorch raises AssertionError there.
    """
    loads = [0] * ranks
    shares: list[list[Share]] = [[] for _ in buckets]
    limit = sum(map(_size, buckets)) / ranks
    for index in sorted(range(len(buckets)), key=lambda index: _size(buckets[index])):
        for start, params in _runs(buckets[index], limit):
            taken = {share.rank for share in shares[index]}
            free = [each for each in range(ranks) if each not in taken]
            rank = min(free or range(ranks), key=loads.__getitem__)
            loads[rank] += _size(params)
            shares[index].append(Share(rank, start, params))
    return shares


def _runs(params: list[Tensor], limit: float) -> Iterator[tuple[int, list[Tensor]]]:
    """The longest runs of parameters with fewer elements than the limit, or of one parameter, and where they start."""
    start = size = 0
    for place, param in enumerate(params):
        if size + param.numel() >= limit and place > start:
            yield start, params[start:place]
            start, size = place, 0
        size += param.numel()
    yield start, params[start:]
