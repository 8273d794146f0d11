"""LambdaSL: the level of sparsity is a function of the epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..sparsifier.base_sparsifier import BaseSparsifier
from .base_scheduler import BaseScheduler


class LambdaSL(BaseScheduler):
    """The level is the sparsifier's times `sl_lambda(epoch)`, which is a function or a list of one for each tensor."""

    def __init__(
        self,
        sparsifier: BaseSparsifier,
        sl_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
        verbose: bool = False,
    ):
        self.sparsifier = sparsifier
        self.sl_lambdas: list[Any] = self._make_sure_a_list(sl_lambda)
        super().__init__(sparsifier, last_epoch, verbose)

    def get_sl(self) -> list[float]:
        self._check_caller()
        return [level * factor(self.last_epoch) for factor, level in zip(self.sl_lambdas, self.base_sl)]
