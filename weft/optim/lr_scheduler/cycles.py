"""Schedules that raise and lower the rate, with a step after each batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import (
    LRScheduler,
    check_optimizer,
    per_group,
    saved_callable,
    set_momentum,
    set_value,
    warn_unless_within_step,
)


def _check_momentum(optimizer: Optimizer) -> bool:
    """Return whether the momentum of the optimizer is its first beta.

    Raises: ValueError if it has none.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def _start_momenta(optimizer: Optimizer, base: list[float], highest: list[float]) -> None:
    for low, high, group in zip(base, highest, optimizer.param_groups):
        set_momentum(group, high)
        group["max_momentum"] = high
        group["base_momentum"] = low


class CyclicLR(LRScheduler):
    """Raises the rate from `base_lr` to `max_lr` in `step_size_up` batches, and lowers it in `step_size_down`.

    `mode` scales the height: "triangular" not at all, "triangular2" halves it each cycle, "exp_range" by
    gamma**batch; `scale_fn` does so by a function of the cycle or, with `scale_mode="iterations"`, the batch.
    With `cycle_momentum` the momentum moves the opposite way, between `base_momentum` and `max_momentum`.
    Raises: ValueError for an unknown mode, and for optimizers without a momentum to cycle.
    Source: Smith, Cyclical Learning Rates for Training Neural Networks, 2017.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import CyclicLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2, cycle_momentum=False)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                set_value(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _check_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momenta(optimizer, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, or the height at a batch, as a part of the height of the first cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]
        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                set_momentum(group, high - (high - low) * height * scale)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return the state; if `scale_fn` is an object, its attributes are a part of it."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        return {**state, "_scale_fn_custom": None if function is None else saved_callable(function)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state; `scale_fn` stays the same object and gets the saved attributes."""
        saved = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if saved is not None:
            self._scale_fn_custom.__dict__.update(saved)  # type: ignore[union-attr]


class OneCycleLR(LRScheduler):
    """Raises the rate to `max_lr` and lowers it to nearly 0, in `total_steps` (or epochs * steps_per_epoch) batches.

    It starts at max_lr / div_factor, reaches `max_lr` after the part `pct_start`, and ends at initial / final_div_factor;
    `anneal_strategy` is "cos" or "linear"; with `three_phase` it comes down to the initial rate first.
    With `cycle_momentum` the momentum moves the opposite way.
    Raises: ValueError for values outside their range, for more steps than announced, and for optimizers without a
    momentum to cycle.
    Source: Smith and Topin, Super-Convergence, 2018.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import OneCycleLR
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = OneCycleLR(optimizer, max_lr=1.0, total_steps=5, cycle_momentum=False, anneal_strategy='linear')
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.8571434285714286, 0.5714302857142857, 0.2857171428571429, 4.000000000004e-06]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        check_strategy(anneal_strategy)
        self._anneal_func_type = anneal_strategy
        highest = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(highest, optimizer.param_groups):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _check_momentum(optimizer)
            base = per_group("base_momentum", optimizer, base_momentum)
            top = per_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                _start_momenta(optimizer, base, top)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        start, phase = 0.0, self._schedule_phases[0]
        for phase in self._schedule_phases:
            if step <= phase["end_step"]:
                break
            if phase is not self._schedule_phases[-1]:
                start = phase["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                first, last = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._anneal(first, last, part))
        return rates

    def _anneal(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def check_strategy(anneal_strategy: str) -> None:
    if anneal_strategy not in ("cos", "linear"):
        raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")


def _total_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        _check_positive("total_steps", total_steps)
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    _check_positive("epochs", epochs)
    _check_positive("steps_per_epoch", steps_per_epoch)
    return epochs * steps_per_epoch


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")


def _phases(total: int, pct_start: float, three: bool) -> list[dict[str, Any]]:
    """Return the phases: the last step of each, and the options of a group between which rate and momentum move."""
    up, down, end = (
        {
            "start_lr": f"{first}_lr",
            "end_lr": f"{last}_lr",
            "start_momentum": f"{first_momentum}_momentum",
            "end_momentum": f"{last_momentum}_momentum",
        }
        for first, last, first_momentum, last_momentum in (
            ("initial", "max", "max", "base"),
            ("max", "initial" if three else "min", "base", "max"),
            ("initial", "min", "max", "max"),
        )
    )
    turn, back, last_step = float(pct_start * total) - 1, float(2 * pct_start * total) - 2, total - 1
    if not three:
        return [{"end_step": turn, **up}, {"end_step": last_step, **down}]
    return [{"end_step": turn, **up}, {"end_step": back, **down}, {"end_step": last_step, **end}]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Repeats half a cosine wave from the initial rate to `eta_min`, first in `T_0` epochs, each `T_mult` times longer.

    `step` takes the epoch if it is called after each batch: epoch + batch / batches.
    Raises: ValueError unless T_0 is a positive integer and T_mult one of at least 1.
    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.

    >>> import weft as torch
    >>> from weft.optim.lr_scheduler import CosineAnnealingWarmRestarts
    >>> optimizer = torch.optim.SGD([torch.ones(2)], lr=1.0)
    >>> schedule = CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step(); schedule.step(); rates += schedule.get_last_lr()
    >>> rates
    [0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        warn_unless_within_step(self)
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Set the rates of the next epoch, or of `epoch`, which need not be whole."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            self._find(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self._rates())

    def _find(self, epoch: float) -> None:
        """Store the number of the wave that an epoch belongs to, and the place of the epoch in it."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self.T_i, self.T_cur = self.T_0, epoch
        if epoch < self.T_0:
            return
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
            return
        waves = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        self.T_cur = epoch - self.T_0 * (self.T_mult**waves - 1) / (self.T_mult - 1)
        self.T_i = self.T_0 * self.T_mult**waves
