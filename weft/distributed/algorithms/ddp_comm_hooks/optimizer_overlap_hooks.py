"""Hooks of DistributedDataParallel that update the parameters of a bucket as soon as its gradients are averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ....autograd.current_pass import ExecutionEngine
from ....core.futures import Future
from ....core.tensor import Tensor
from ..._grad_bucket import GradBucket
from ..._group import ProcessGroup
from ...optim.apply_optimizer_in_backward import in_backward_optimizers
from .default_hooks import Hook, allreduce_hook

__all__: list[str] = []


class _OptimizerHookState:
    """A functional optimizer, and the parameters that it updates: all of them without `params`.

    Raises: ValueError for an optimizer without a method `step_param`.
    """

    __slots__ = ["functional_optimizer", "params_to_optimize"]

    def __init__(self, functional_optim: Any, params: Iterable[Tensor] | None = None) -> None:
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        self.params_to_optimize = None if params is None else set(params)


def _hook_then_optimizer(hook: Hook, optimizer_state: _OptimizerHookState) -> Hook:
    """A hook that averages gradients with `hook`, then updates the parameters with the optimizer of the state."""
    wanted = optimizer_state.params_to_optimize

    def update(param: Tensor, gradient: Tensor) -> None:
        if wanted is None or param in wanted:
            optimizer_state.functional_optimizer.step_param(param, gradient)

    def hook_then_optimizer_wrapper(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        return _then_each(hook(hook_state, bucket), bucket, update)

    return hook_then_optimizer_wrapper


def _update_in_backward_hook(process_group: ProcessGroup, bucket: GradBucket) -> Future[Tensor]:
    """Average gradients, then let the optimizers of `_apply_optimizer_in_backward` update their parameters, whose gradients are None after the pass."""
    chosen = [each for each in bucket.parameters() if in_backward_optimizers(each)]

    def update(param: Tensor, gradient: Tensor) -> None:
        if in_backward_optimizers(param):
            param.grad = gradient
        for each in in_backward_optimizers(param):
            each.step()

    def drop_gradients() -> None:
        for param in chosen:
            param.grad = None

    # It runs after the callback of DistributedDataParallel, which writes gradients.
    ExecutionEngine().queue_callback(drop_gradients)
    return _then_each(allreduce_hook(process_group, bucket), bucket, update)


def _then_each(
    averaged: Future[Tensor], bucket: GradBucket, update: Callable[[Tensor, Tensor], None]
) -> Future[Tensor]:
    """The average of a bucket, after which `update(parameter, gradient)` was called for each of its parameters."""

    def update_all(done: Future[Tensor]) -> Tensor:
        bucket._receive(done.value())
        for param, gradient in zip(bucket.parameters(), bucket.gradients()):
            update(param, gradient)
        return bucket.buffer()

    return averaged.then(update_all)
