"""`torch.distributed.algorithms.model_averaging.averagers`: when parameters are averaged over all ranks."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ....core.warn import user_level
from ..._group import ProcessGroup
from ..._world import _group_or_default_group
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]

_NO_USE = (
    "When {} is 1, no need to use model averaging because averaging parameters sends as much as averaging gradients in the "
    "backward pass. Use DistributedDataParallel alone."
)


class ModelAverager(ABC):
    """Counts the steps of a training loop, and averages parameters in some of them. `process_group`: the ranks, by default all."""

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = _group_or_default_group(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Any) -> None:
        """Count a step, and average the parameters if it is their turn."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters in step `warmup_steps`, and in every `period`-th step after it.

    Raises: ValueError for a period below 1 or a negative number of steps.

    >>> import weft as torch
    >>> from weft.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.Linear(2, 1)
    >>> averager = PeriodicModelAverager(period=4, warmup_steps=100)
    >>> averager.average_parameters(model.parameters())     # after optimizer.step()
    >>> averager.step
    1
    >>> dist.destroy_process_group()
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        check_warmup_steps(warmup_steps)
        self.warmup_steps = warmup_steps
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn_of_no_use("period")
        self.period = period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is its turn. `params`: parameters, or the groups of an optimizer."""
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1


def check_warmup_steps(warmup_steps: int) -> None:
    """Raise ValueError for a negative number of steps."""
    if warmup_steps < 0:
        raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")


def warn_of_no_use(what: str) -> None:
    """Warn that averages of each step are better made of gradients."""
    warnings.warn(_NO_USE.format(what), stacklevel=user_level())
