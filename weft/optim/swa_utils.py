"""Averages of weights over training: stochastic weight averaging and exponential moving averages."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

from ..core.dtype import int64
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..nn.module import Module
from ..nn.modules.batchnorm import _BatchNorm
from ..ops.creation.from_data import tensor
from .lr_scheduler.base import LRScheduler, per_group, warn_unless_within_step
from .lr_scheduler.cycles import check_strategy
from .optimizer import Optimizer

__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """Return the function (averages, values, number) that moves averages in place by 1 - decay towards the values."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: Iterable[Tensor], values: Iterable[Tensor], _: Any) -> None:
        _move(averages, values, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable:
    """Return the function (averages, values, number) that adds values in place to the averages of `number` values."""

    @no_grad()
    def swa_update(averages: Iterable[Tensor], values: Iterable[Tensor], number: Any) -> None:
        _move(averages, values, 1 / (float(number) + 1))

    return swa_update


def _move(averages: Iterable[Tensor], values: Iterable[Tensor], weight: float) -> None:
    for average, value in zip(averages, values, strict=True):
        if average.is_floating_point() or average.is_complex():
            average.lerp_(value, weight)
        else:
            average.copy_(average + (value - average) * weight)


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """Return the function (average, value, number) that computes decay * average + (1 - decay) * value."""
    _check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, value: Tensor, _: Any) -> Tensor:
        return decay * average + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Callable:
    """Return the function (average, value, number) that adds a value to the average of `number` values."""

    @no_grad()
    def swa_update(average: Tensor, value: Tensor, number: Any) -> Tensor:
        return average + (value - average) / (number + 1)

    return swa_update


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


class AveragedModel(Module):
    """Copies a model and averages its parameters, with equal weights unless a function computes the averages.

    `avg_fn(average, value, number)` returns the new average of one parameter; `multi_avg_fn(averages, values, number)`
    changes the averages of many in place. Buffers are averaged with `use_buffers`, else copied.
    Source: Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, 2018.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the parameters of `model` to the averages."""
        averages = [average.detach() for average in self._averaged(self.module)]
        values = [
            value.detach().to(average.device)
            for value, average in zip(self._averaged(model), averages, strict=True)
        ]
        if self.n_averaged == 0:
            for average, value in zip(averages, values):
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            for alike in _groups(averages, values):
                self.multi_avg_fn(*alike, self.n_averaged.to(alike[0][0].device))
        else:
            function = self.avg_fn or get_swa_avg_fn()
            for average, value in zip(averages, values):
                average.copy_(function(average, value, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        return itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ())


def _groups(averages: list[Tensor], values: list[Tensor]) -> Iterable[tuple[list[Tensor], list[Tensor]]]:
    """Group the averages and values by device and dtype."""
    groups: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
    for average, value in zip(averages, values):
        mine, theirs = groups.setdefault((average.device, average.dtype), ([], []))
        mine.append(average)
        theirs.append(value)
    return groups.values()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Set the running statistics of all batch norms of `model` to those of one pass over the batches of `loader`.

    A batch is a tensor, or a list or tuple that begins with one.

    >>> import weft as torch
    >>> model = torch.nn.BatchNorm1d(1)
    >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # None averages over all batches
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """Moves the rate of each group to `swa_lr` in `anneal_epochs` epochs, with the strategy "cos" or "linear".

    Raises: ValueError for an unknown `anneal_strategy`, or `anneal_epochs` that is not a number of epochs.

    >>> import weft as torch
    >>> from weft.optim.swa_utils import SWALR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = SWALR(optimizer, swa_lr=0.0, anneal_epochs=2, anneal_strategy='linear')
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 0.0, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        for rate, group in zip(per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        check_strategy(anneal_strategy)
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, last = group["lr"], group["swa_lr"]
            first = last if before == 1 else (rate - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates

    def _part(self, step: int) -> float:
        """Return the part of the annealing that is done after a step."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2
