"""`torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook`: hooks that average gradients and let ZeroRedundancyOptimizer update parameters.

Updates begin when the buckets have their final order and one more pass has shown them: with the third pass, or with the fourth one of a static graph.
"""

from __future__ import annotations

from typing import Any

from ....core.futures import Future
from ....core.tensor import Tensor
from ..._grad_bucket import GradBucket
from ...optim._overlap import Overlap
from ...optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer
from .default_hooks import Hook

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]


def hook_with_zero_step(
    hook: Hook, ddp: Any, zero: ZeroRedundancyOptimizer, shard_buckets: bool = False
) -> Hook:
    """Return a hook that averages gradients with `hook`, and updates all parameters when the backward pass has begun to average the last gradients.

    Args:
        hook: averages the gradients of a bucket.
        ddp: the DistributedDataParallel that calls the hook.
        zero: the optimizer, made with `overlap_with_ddp=True`.
        shard_buckets: let several ranks share a bucket, so that all have about as much to update; else each bucket belongs to one rank.

    Returns: a function for `register_comm_hook`.

    Raises: ValueError for an optimizer without `overlap_with_ddp=True`.

    >>> import weft as torch
    >>> from weft.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
    >>> from weft.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    >>> zero = dist.optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.5)
    >>> model.register_comm_hook(None, hook_with_zero_step(allreduce_hook, model, zero))
    >>> before = model.module.weight.item()
    >>> for _ in range(4):  # the first two passes show the buckets
    ...     model(torch.ones(1, 1)).sum().backward()
    ...     model.zero_grad()
    >>> round(before - model.module.weight.item(), 4)
    1.0
    >>> dist.destroy_process_group()
    """
    overlap = _overlap_of(zero, shard_buckets)
    begun: list[tuple[GradBucket, Future[Tensor]]] = []

    def hook_with_zero_fn(state: Any, bucket: GradBucket) -> Future[Tensor]:
        future = hook(state, bucket)
        if not _is_ready(overlap, ddp, bucket):
            return future
        begun.append((bucket, future))
        if bucket.is_last():
            for each, averaged in begun:
                each._receive(averaged.wait())
                overlap.update(each)
                overlap.send(each)
            overlap.finish()
            begun.clear()
        return future

    return hook_with_zero_fn


def hook_with_zero_step_interleaved(
    hook: Hook, ddp: Any, zero: ZeroRedundancyOptimizer, shard_buckets: bool = False
) -> Hook:
    """Return a hook that averages gradients with `hook`, and updates the parameters of a bucket as soon as its gradients are there, while the backward pass goes on.

    Args, Returns, Raises: as of `hook_with_zero_step`.
    """
    overlap = _overlap_of(zero, shard_buckets)

    def hook_with_zero_interleaved_fn(state: Any, bucket: GradBucket) -> Future[Tensor]:
        future = hook(state, bucket)
        if not _is_ready(overlap, ddp, bucket):
            return future

        def update(averaged: Future[Tensor]) -> Tensor:
            bucket._receive(averaged.value())
            overlap.update(bucket)
            overlap.send(bucket)
            if bucket.is_last():
                overlap.finish()
            return bucket.buffer()

        return future.then(update)

    return hook_with_zero_interleaved_fn


def _overlap_of(zero: ZeroRedundancyOptimizer, shard_buckets: bool) -> Overlap:
    overlap = zero._overlap
    if overlap is None:
        raise ValueError(
            "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this hook properly"
        )
    overlap.splits = shard_buckets
    return overlap


def _is_ready(overlap: Overlap, ddp: Any, bucket: GradBucket) -> bool:
    """Whether the optimizer updates the parameters of a bucket; if not, it notes the bucket."""
    if ddp._has_rebuilt_buckets and not overlap.is_ready:
        overlap.note(bucket)
    return overlap.is_ready
