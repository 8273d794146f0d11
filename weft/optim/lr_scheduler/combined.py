"""Schedules that combine other schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_value, values
from .plateau import ReduceLROnPlateau


class _Combined(LRScheduler):
    """A schedule that passes its steps on to other schedules."""

    _schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the base class and the state dictionaries of all schedules."""
        state = super().state_dict()
        del state["_schedulers"]
        return {**state, "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of the base class and of all schedules."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)

    def _check(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
        """Raise TypeError for other objects than schedules, ValueError for one of another optimizer or of a metric."""
        name = type(self).__name__
        for index, each in enumerate(schedulers):
            if not hasattr(each, "optimizer"):
                raise TypeError(f"{name} at index {index} should have `optimizer` as its attribute.")
            if isinstance(each, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {index} in the given schedulers sequence."
                )
            if each.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(each).__name__} at index {index} has {each.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )


class SequentialLR(_Combined):
    """Runs one schedule after the other. At each of `milestones` the next one begins at its epoch 0.

    Raises: ValueError unless there is one milestone fewer than schedules, all of `optimizer`.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> first = ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> second = ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = SequentialLR(optimizer, [first, second], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 1.0, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Every schedule took a step when it was created. Undo these steps, and let only the first schedule step.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Undo an epoch of `sched` and of all schedules that it combines; by default of all schedules here."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for each in scheduler._schedulers:
                self.recursive_undo(each)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Combined):
    """Runs all schedules in each epoch; each changes the rates that the one before has set.

    Raises: ValueError for no schedules, or schedules of several optimizers.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import ChainedScheduler, ExponentialLR, StepLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> both = [ExponentialLR(optimizer, gamma=0.5), StepLR(optimizer, step_size=2, gamma=0.5)]
    >>> schedule = ChainedScheduler(both, optimizer)
    >>> rates = []
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 0.125, 0.0625]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but got no scheduler."
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Set the rates of the next epoch."""
        for each in self._schedulers:
            each.step()
        self._last_lr = values(self.optimizer, "lr")
