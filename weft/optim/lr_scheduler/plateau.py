"""A schedule that waits for a metric to stop improving."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ...core.warn import user_level
from ..optimizer import Optimizer
from .base import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer, set_value, values


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by `factor` if the metric has not improved for more than `patience` epochs.

    `mode` is "min" or "max"; to improve, the metric must change by `threshold`, a part of the best one ("rel") or by
    itself ("abs"). After a reduction `cooldown` epochs do not count. Rates stay above `min_lr`; changes below `eps`
    are not made.
    Raises: ValueError for a factor of 1 or more, unknown modes, or as many `min_lr` as there are no groups.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import ReduceLROnPlateau
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(1.0); rates += schedule.get_last_lr()
    >>> rates
    [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr: float | None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values(optimizer, "lr")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Return whether the schedule ignores epochs without improvement now."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Count an epoch with this metric, and reduce the rates if the metric has not improved for too long."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=user_level())
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values(self.optimizer, "lr")

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group being "
                    "added to the optimizer. Please modify the `min_lrs` field to match the length of the `optimizer` "
                    "param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_value(group, "lr", new)

    def _is_better(self, a: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            below, above = best * (1.0 - self.threshold), best * (self.threshold + 1.0)
        else:
            below, above = best - self.threshold, best + self.threshold
        return a < below if self.mode == "min" else a > above
