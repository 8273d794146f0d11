"""BaseScheduler: chooses the level of sparsity for each epoch."""

from __future__ import annotations

import warnings
from typing import Any

from ....core.warn import user_level
from ..sparsifier.base_sparsifier import BaseSparsifier


class BaseScheduler:
    """The base of schedulers, which define `get_sl`: the level of each tensor of the sparsifier.

    last_epoch: the epoch before the first call of `step`, which the constructor makes.
    """

    def __init__(self, sparsifier: BaseSparsifier, last_epoch: int = -1, verbose: bool = False):
        if not isinstance(sparsifier, BaseSparsifier):
            raise TypeError(
                f"{type(sparsifier).__name__} is not an instance of torch.ao.pruning.BaseSparsifier"
            )
        self.sparsifier = sparsifier
        self.base_sl = [group["sparsity_level"] for group in sparsifier.groups]
        self.last_epoch, self.verbose = last_epoch, verbose
        sparsifier._step_count = self._step_count = 0
        self._get_sl_called_within_step = False
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the sparsifier."""
        return {key: value for key, value in vars(self).items() if key != "sparsifier"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the attributes."""
        vars(self).update(state_dict)

    def get_last_sl(self) -> list[float]:
        """The levels of the last step."""
        return self._last_sl

    def get_sl(self) -> list[float]:
        """The level of each tensor in the epoch `last_epoch`."""
        raise NotImplementedError

    def _check_caller(self) -> None:
        if not self._get_sl_called_within_step:
            warnings.warn(
                "get_sl() belongs to step(): for the last levels, please use `get_last_sl()`.",
                stacklevel=user_level(),
            )

    def print_sl(self, is_verbose: bool, group: int, sl: float, epoch: int | None = None) -> None:
        """Print the level of one tensor."""
        if is_verbose:
            prefix = "Adjusting" if epoch is None else f"Epoch {epoch:5d}: adjusting"
            print(f"{prefix} sparsity level of group {group} to {sl:.4e}.")

    def __repr__(self) -> str:
        return f"{type(self).__name__} (\nSparsifier {self.sparsifier}\n    base_sl: {self.base_sl}\n)"

    def step(self, epoch: int | None = None) -> None:
        """Begin the next epoch: give the sparsifier its levels."""
        if self._step_count == 1 and self.sparsifier._step_count < 1:
            warnings.warn(
                "Detected call of `scheduler.step()` before `sparsifier.step()`: call sparsifier.step() first",
                stacklevel=user_level(),
            )
        self._step_count += 1
        self._get_sl_called_within_step = True
        try:
            self.last_epoch += 1
            values = self.get_sl()
        finally:
            self._get_sl_called_within_step = False
        for i, (group, level) in enumerate(zip(self.sparsifier.groups, values)):
            group["sparsity_level"] = level
            self.print_sl(self.verbose, i, level, epoch)
        self._last_sl = [group["sparsity_level"] for group in self.sparsifier.groups]
        self.sparsifier.enable_mask_update = True

    def _make_sure_a_list(self, var: Any) -> list:
        """A value for each tensor. Raises: ValueError for a list of another length."""
        count = len(self.sparsifier.groups)
        if not isinstance(var, (list, tuple)):
            return [var] * count
        if len(var) != count:
            raise ValueError(f"Expected variable of length {count}, but got {len(var)}")
        return list(var)
