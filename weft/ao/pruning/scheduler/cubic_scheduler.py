"""CubicSL: the level of sparsity grows fast at first, and slowly at the end."""

from __future__ import annotations

from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler


class CubicSL(BaseScheduler):
    """The level goes from `init_sl` to the sparsifier's, in `total_t` times `delta_t` epochs from `init_t` on.

    Each may be a list with a value for each tensor. initially_zero: the level before `init_t` is 0, and not `init_sl`.
    Source: Zhu and Gupta 2017, "To prune, or not to prune", equation 1.
    """

    def __init__(
        self, sparsifier: BaseSparsifier, init_sl: Any = 0.0, init_t: Any = 0, delta_t: Any = 10, total_t: Any = 100,
        initially_zero: Any = False, last_epoch: int = -1, verbose: bool = False,
    ):  # fmt: skip
        self.sparsifier = sparsifier
        self.init_sl, self.init_t = self._make_sure_a_list(init_sl), self._make_sure_a_list(init_t)
        self.delta_t, self.total_t = self._make_sure_a_list(delta_t), self._make_sure_a_list(total_t)
        self.initially_zero = self._make_sure_a_list(initially_zero)
        super().__init__(sparsifier, last_epoch, verbose)

    @staticmethod
    def sparsity_compute_fn(
        s_0: float, s_f: float, t: int, t_0: int, dt: int, n: int, initially_zero: bool = False
    ) -> float:
        """The level of epoch `t`, from `s_0` at epoch `t_0` to `s_f` after `n` times `dt` epochs."""
        if initially_zero and t < t_0:
            return 0
        level = s_f + (s_0 - s_f) * (1.0 - (t - t_0) / (dt * n)) ** 3
        return max(s_0, min(s_f, level))

    def get_sl(self) -> list[float]:
        self._check_caller()
        columns = self.init_sl, self.base_sl, self.init_t, self.delta_t, self.total_t, self.initially_zero
        return [
            self.sparsity_compute_fn(s_0, s_f, self.last_epoch, t_0, dt, n, initially_zero)
            for s_0, s_f, t_0, dt, n, initially_zero in zip(*columns, strict=True)
        ]
