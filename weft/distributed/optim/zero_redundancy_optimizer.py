"""ZeroRedundancyOptimizer: an optimizer whose state is divided among processes. One process has all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...optim import Optimizer
from .._group import ProcessGroup
from .._world import _group_or_default_group, check_one_rank
from ..algorithms.join import Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Updates the parameters of this process with an `optimizer_class`, and shares them. So far there is one process.

    >>> import weft as torch
    >>> from weft.distributed.optim import ZeroRedundancyOptimizer
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.nn.Parameter(torch.ones(1))
    >>> optimizer = ZeroRedundancyOptimizer([x], torch.optim.SGD, lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x.item()
    0.0
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer: overlap_with_ddp: there is nothing to overlap"
            )
        self.process_group = _group_or_default_group(process_group)
        check_one_rank("ZeroRedundancyOptimizer", self.process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.initialized = False
        params = list(params)
        Optimizer.__init__(self, params, dict(defaults))
        Joinable.__init__(self)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self.optim = optimizer_class(params, **defaults)
        self._all_state_dicts: list[dict[str, Any]] = []
        self._share()
        self.initialized = True

    def _share(self) -> None:
        """Show the groups and states of the inner optimizer as those of this one."""
        self.param_groups = self.optim.param_groups
        self.state = self.optim.state

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters."""
        return self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own."""
        if not self.initialized:
            super().add_param_group(param_group)
            return
        self.optim.add_param_group(param_group)
        self._share()

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all ranks on rank `to`."""
        self._all_state_dicts = [self.optim.state_dict()]

    def state_dict(self) -> dict[str, Any]:
        """The state of all ranks. Raises: RuntimeError before `consolidate_state_dict`."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        return self._all_state_dicts[0]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of all ranks."""
        self.optim.load_state_dict(state_dict)
        self._share()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return JoinHook()

    @property
    def join_device(self) -> Any:
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group
