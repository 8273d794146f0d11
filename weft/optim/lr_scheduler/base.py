"""The base of schedules counts epochs, writes learning rates into the optimizer, and saves and loads its state."""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from typing import Any

from ...core.constructors import name_constructor
from ...core.tensor import Tensor
from ...core.warn import user_level
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being "
    "deprecated where possible. Please use `scheduler.step()` to step the "
    "scheduler. During the deprecation, if epoch is different from None, the "
    "closed form is used instead of the new chainable form, where available. "
    "Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
_HOW_TO = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


class LRScheduler:
    """The base of schedules. A subclass defines `get_lr`, which returns the rates of all groups at `self.last_epoch`.

    A schedule sets the rates when it is made, and at each `step`, which is to be called after the optimizer's.
    `last_epoch` is the epoch to continue from; -1 starts with the rates that the groups have then.
    Raises: TypeError for other objects than optimizers, KeyError for groups without "initial_lr" when it continues.
    """

    # A subclass may define `_get_closed_form_lr`, which computes the rates without the rates of the last epoch.
    _get_lr_called_within_step = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_constructor(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copy(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for "
                    "a fresh training run (not recommended)"
                )
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _watch(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return the state that is needed to continue, without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the result of `state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rates that the last step set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Return the rates for `self.last_epoch`; only `step` calls this method."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=user_level())
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                "Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. " + _HOW_TO,
                UserWarning,
                stacklevel=user_level(),
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
                "do this will result in PyTorch skipping the first value of the learning rate schedule. "
                + _HOW_TO,
                UserWarning,
                stacklevel=user_level(),
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if epoch is not None and hasattr(self, "_get_closed_form_lr"):
            self._set(self._get_closed_form_lr())
        else:
            self._set(self._rates())

    def _rates(self) -> list[Any]:
        """Call `get_lr` without its warning."""
        self._get_lr_called_within_step = True
        try:
            return self.get_lr()
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            set_value(group, "lr", rate)
        self._last_lr = values(self.optimizer, "lr")


class _LRScheduler(LRScheduler):
    """The name that LRScheduler had in older versions."""


def _watch(optimizer: Optimizer) -> None:
    """Let the optimizer record that its `step` was called."""
    step = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    function, reference = step.__func__, weakref.ref(optimizer)  # type: ignore[attr-defined]

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        owner: Any = reference()
        owner._opt_called = True
        return function(owner, *args, **kwargs)

    watched._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = watched  # type: ignore[method-assign]


def check_optimizer(value: Any) -> None:
    if not isinstance(value, Optimizer):
        raise TypeError(f"{type(value).__name__} is not an Optimizer")


def warn_unless_within_step(scheduler: LRScheduler) -> None:
    if not scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
            UserWarning,
            stacklevel=user_level(),
        )


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return one value for each group, from a list or tuple of them or one value for all."""
    if not isinstance(value, (list, tuple)):
        return [_copy(value) for _ in optimizer.param_groups]
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {len(optimizer.param_groups)}."
        )
    return [_copy(each) for each in value]


def values(optimizer: Optimizer, name: str) -> list[Any]:
    """Return an option of all groups."""
    return [_copy(group[name]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], name: str, value: Any) -> None:
    """Change an option of a group; if the option is a tensor, write into it."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = value


def set_momentum(group: dict[str, Any], value: Any) -> None:
    """Change the momentum of a group, which for Adam and its relatives is the first beta."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def saved_callable(function: Any) -> dict[str, Any] | None:
    """Return the attributes of a callable object for a state dictionary, or None for a function."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value
