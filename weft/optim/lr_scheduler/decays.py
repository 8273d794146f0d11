"""Schedules that multiply the rates by a factor that depends on the epoch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, saved_callable, values, warn_unless_within_step


class _OfFunctions(LRScheduler):
    """Represents a schedule given by functions of the epoch, one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable | list[Callable], last_epoch: int = -1):
        self.optimizer = optimizer
        self.lr_lambdas = _functions(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state; if a function is an object, its attributes are a part of it."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": [saved_callable(each) for each in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state; the functions stay the same, and objects among them get the saved attributes."""
        saved = state_dict["lr_lambdas"]
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, saved):
            if attributes is not None:
                function.__dict__.update(attributes)


class LambdaLR(_OfFunctions):
    """Multiplies the initial rate by lr_lambda(epoch); a list has a function for each group.

    >>> import weft as torch
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> for _ in range(2):
    ...     optimizer.step(); schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_OfFunctions):
    """Each epoch multiplies the rate by lr_lambda(epoch).

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import MultiplicativeLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 0.25, 0.125, 0.0625]
    """

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        rates = values(self.optimizer, "lr")
        if self._is_initial:
            return rates
        return [rate * function(self.last_epoch) for function, rate in zip(self.lr_lambdas, rates)]


def _functions(optimizer: Optimizer, given: Any) -> list[Callable]:
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        raise ValueError(f"Expected {groups} lr_lambdas, but got {len(given)}")
    return list(given)


class _Factor(LRScheduler):
    """Multiplies the rate by `_factor()` in each epoch."""

    def _factor(self) -> float:
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        factor = self._factor()
        return [rate * factor if factor != 1 else rate for rate in values(self.optimizer, "lr")]


class StepLR(_Factor):
    """Multiplies the rate by `gamma` every `step_size` epochs.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import StepLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return 1 if self.last_epoch == 0 or self.last_epoch % self.step_size != 0 else self.gamma

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(_Factor):
    """Multiplies the rate by `gamma` at each epoch in `milestones`.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import MultiStepLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else 1

    def _get_closed_form_lr(self):
        reached = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**reached for base in self.base_lrs]


class ConstantLR(_Factor):
    """Multiplies the rate by `factor` for the first `total_iters` epochs.

    Raises: ValueError unless 0 <= factor <= 1.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import ConstantLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 1.0, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _get_closed_form_lr(self):
        over = self.last_epoch >= self.total_iters
        return [base * (self.factor + over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(_Factor):
    """Multiplies the rate by a factor that moves from `start_factor` to `end_factor` in `total_iters` epochs.

    Raises: ValueError for factors outside (0, 1] and [0, 1].

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import LinearLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.75, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1.0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."
            )
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        change = self.end_factor - self.start_factor
        return 1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change)

    def _get_closed_form_lr(self):
        change = (self.end_factor - self.start_factor) * min(self.total_iters, self.last_epoch)
        return [base * (self.start_factor + change / self.total_iters) for base in self.base_lrs]


class ExponentialLR(_Factor):
    """Each epoch multiplies the rate by `gamma`.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import ExponentialLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 0.25, 0.125, 0.0625]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return 1 if self._is_initial else self.gamma

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(_Factor):
    """Multiplies the initial rate by (1 - epoch / total_iters)**power, and by 0 after `total_iters` epochs.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import PolynomialLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = PolynomialLR(optimizer, total_iters=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.75, 0.5, 0.25, 0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        left, left_before = (
            1.0 - epoch / self.total_iters for epoch in (self.last_epoch, self.last_epoch - 1)
        )
        return (left / left_before) ** self.power

    def _get_closed_form_lr(self):
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (1.0 - part) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Moves the rate from its initial value to `eta_min` and back, along a cosine wave of half length `T_max` epochs.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017, without the restarts.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import CosineAnnealingLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = CosineAnnealingLR(optimizer, T_max=4)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.8535533905932737, 0.5, 0.14644660940672627, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):  # noqa: N803
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        # Compute from the last rate, so that schedules can be chained.
        warn_unless_within_step(self)
        rates = values(self.optimizer, "lr")
        epoch, span, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return rates
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - span) % (2 * span) == 0:  # the last rate was the lowest one, which cannot be scaled
            rise = (1 - math.cos(math.pi / span)) / 2
            return [rate + (base - low) * rise for base, rate in zip(self.base_lrs, rates)]
        now, before = (1 + math.cos(math.pi * e / span) for e in (epoch, epoch - 1))
        return [now / before * (rate - low) + low for rate in rates]

    def _get_closed_form_lr(self):
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]
