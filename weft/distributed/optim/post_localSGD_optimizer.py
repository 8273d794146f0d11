"""PostLocalSGDOptimizer: an optimizer of each rank, and averages of the parameters of all ranks from time to time."""

from __future__ import annotations

import warnings
from typing import Any

from ...core.warn import user_level
from ...optim import Optimizer
from ..algorithms.model_averaging.averagers import ModelAverager

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Updates the parameters with the optimizer `optim` of this rank, then lets `averager` average them.

    Source: Lin, Stich, Patel, Jaggi 2018, "Don't Use Large Mini-Batches, Use Local SGD".

    >>> import weft as torch
    >>> from weft.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    >>> from weft.distributed.optim import PostLocalSGDOptimizer
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.nn.Parameter(torch.ones(1))
    >>> optimizer = PostLocalSGDOptimizer(torch.optim.SGD([x], lr=0.5), PeriodicModelAverager(period=4))
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x.item(), optimizer.state_dict()["step"]
    (0.0, 1)
    >>> dist.destroy_process_group()
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager) -> None:
        self.optim = optim
        self.param_groups = optim.param_groups
        self.averager = averager

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer, and under "step" how many steps the averager has counted."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of the optimizer, and the steps of the averager: 0, with a warning, if they are not in it."""
        self.optim.load_state_dict(state_dict)
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=user_level(),
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:  # type: ignore[override]
        """Update the parameters of this rank, and average them if it is their turn."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optim.add_param_group(param_group)
