"""`torch.distributed.algorithms.model_averaging.hierarchical_model_averager`: small groups average parameters often, large ones seldom.

Source: Wang, Liu, Ji, Joshi 2020, "Demystifying Why Local Aggregation Helps: Convergence Analysis of Hierarchical SGD".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from ..._group import ProcessGroup
from ..._groups import new_subgroups
from . import utils
from .averagers import ModelAverager, check_warmup_steps, warn_of_no_use

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(ModelAverager):
    """Averages parameters in groups of several sizes, each of which has a period of its own.

    period_group_size_dict: the sizes of the groups by their periods, both growing; the last size is that of `process_group`. In a step that is a
    multiple of several periods the largest group averages. warmup_steps: the steps before the first average.

    Raises: ValueError without periods, for a first period below 1, if the last size is another one, or for a negative number of steps.

    >>> import weft as torch
    >>> from weft.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> averager = HierarchicalModelAverager({2: 1, 4: 1})
    >>> list(averager.period_process_group_dict)
    [2, 4]
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            warn_of_no_use("the maximum period in arg ``period_group_size_dict``")
        largest, size = list(period_group_size_dict.values())[-1], self.process_group.size()
        if largest != size:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {largest} must be equal to the size of arg ``process_group`` {size}."
            )
        self.period_process_group_dict = OrderedDict(
            (period, self.process_group if count == size else new_subgroups(count, self.process_group)[0])
            for period, count in period_group_size_dict.items()
        )
        check_warmup_steps(warmup_steps)
        self.warmup_steps = warmup_steps

    def _find_process_group(self) -> ProcessGroup | None:
        """The group that averages in this step."""
        return next(
            (
                self.period_process_group_dict[each]
                for each in reversed(self._periods)
                if self.step % each == 0
            ),
            None,
        )

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Count a step, and average if it is the turn of a group. `params`: parameters, or the groups of an optimizer."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
