"""ZeroRedundancyOptimizer: an optimizer whose state is divided among processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core.tensor import Tensor
from ...optim import Optimizer
from .._coalesced import broadcast_coalesced
from .._group import ProcessGroup
from .._objects import gather_object
from .._world import _group_or_default_group
from ..algorithms.join import Join, Joinable, JoinHook
from ._overlap import Overlap
from .utils import functional_optim_map

__all__ = ["ZeroRedundancyOptimizer"]

_log = logging.getLogger(__name__)


class _StepHook(JoinHook):
    """Takes part in the steps of the processes that still have inputs."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        if self.optimizer._overlap is None:
            self.optimizer._update()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Updates a part of the parameters with an `optimizer_class`, and gets the others from the other ranks.

    So each rank has the optimizer's state of its part only. With `overlap_with_ddp=True`, a hook of DistributedDataParallel
    (`hook_with_zero_step`) updates parameters within backward passes, with the settings that the constructor gets, and `step` does nothing.

    Raises: ValueError for `overlap_with_ddp=True` and an optimizer that `as_functional_optim` does not know.

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
        if not overlap_with_ddp and optimizer_class in functional_optim_map.values():
            raise ValueError(
                f"Passing in a functional optimizer {optimizer_class} when `overlap_with_ddp=False`"
            )
        self.process_group = _group_or_default_group(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.initialized = False
        Optimizer.__init__(self, list(params), dict(defaults))
        Joinable.__init__(self)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._all_state_dicts: list[dict[str, Any]] = []
        # By rank, for each group of parameters those that the rank updates.
        self._partition: list[list[list[Tensor]]] = [[] for _ in range(self.world_size)]
        self._loads = [0] * self.world_size
        self._overlap: Overlap | None = None
        if overlap_with_ddp:
            self._start_overlap(optimizer_class, defaults, parameters_as_bucket_view)
        else:
            self._start(optimizer_class, defaults)
        self.initialized = True

    def _start(self, optimizer_class: type[Optimizer], defaults: dict[str, Any]) -> None:
        for group in self.param_groups:
            self._share_out(group["params"])
        self.optim = optimizer_class(self._own_groups(), **defaults)
        self.state = self.optim.state
        self._copy_settings(self.optim.param_groups, self.param_groups)

    def _start_overlap(self, optimizer_class: Any, defaults: dict[str, Any], as_views: bool) -> None:
        if as_views:
            _log.warning("`parameters_as_bucket_view=True` has no effect with `overlap_with_ddp=True`")
        self._overlap = Overlap(self.process_group, optimizer_class, defaults)

    def _refuse_overlap(self, name: str) -> None:
        """Raise RuntimeError before updates within hooks have begun, and then NotImplementedError."""
        if self._overlap is None:
            return
        if not self._overlap.is_ready:
            raise RuntimeError(
                "This method should not be called until this ZeroRedundancyOptimizer instance has been fully initialized"
            )
        raise NotImplementedError(f"ZeroRedundancyOptimizer.{name} with overlap_with_ddp=True")

    def _share_out(self, params: Sequence[Tensor]) -> None:
        """Give the parameters of a group to the ranks: the largest first, each to the rank that has least."""
        owners = {}
        for param in sorted(params, key=lambda param: param.numel(), reverse=True):
            owners[id(param)] = rank = self._loads.index(min(self._loads))
            self._loads[rank] += param.numel()
        for rank, parts in enumerate(self._partition):
            parts.append([param for param in params if owners[id(param)] == rank])

    def _own_groups(self) -> list[dict[str, Any]]:
        pairs = zip(self.param_groups, self._partition[self.rank])
        return [{**group, "params": params} for group, params in pairs]

    @staticmethod
    def _copy_settings(source: Sequence[dict[str, Any]], target: Sequence[dict[str, Any]]) -> None:
        """Copy learning rates and the like from some groups to others."""
        for given, group in zip(source, target):
            group.update({key: value for key, value in given.items() if key != "params"})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Update the parameters of this rank, and get those of the others. With `overlap_with_ddp=True` hooks do so, and this does nothing."""
        if self._overlap is not None:
            _log.warning(
                "`step()` does nothing with `overlap_with_ddp=True`: the hook updates the parameters"
            )
            return None
        Join.notify_join_context(self)
        return self._update(closure, **kwargs)

    def _update(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        self._copy_settings(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._copy_settings(self.optim.param_groups, self.param_groups)
        if self.world_size > 1:
            for rank, parts in enumerate(self._partition):
                params = [param for part in parts for param in part]
                if params:
                    broadcast_coalesced(self.process_group, params, rank)
        return loss

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own. Raises: RuntimeError with `overlap_with_ddp=True`."""
        if self.initialized and self._overlap is not None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer with `overlap_with_ddp=True` only supports a single parameter group"
            )
        super().add_param_group(param_group)
        if self.initialized:
            self._share_out(self.param_groups[-1]["params"])
            self.optim.add_param_group(self._own_groups()[-1])

    # ---- States

    def _indices(self) -> list[list[int]]:
        """By rank, the numbers of its parameters among all, in the order in which its optimizer has them."""
        params = [param for group in self.param_groups for param in group["params"]]
        numbers = {id(param): number for number, param in enumerate(params)}
        return [[numbers[id(param)] for part in parts for param in part] for parts in self._partition]

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all ranks on rank `to`. All ranks have to call it."""
        self._refuse_overlap("consolidate_state_dict")
        self._copy_settings(self.param_groups, self.optim.param_groups)
        states: list[Any] = [None] * self.world_size
        gather_object(
            self.optim.state_dict(),
            states if self.rank == to else None,
            group=self.process_group,
            group_dst=to,
        )
        self._all_state_dicts = states if self.rank == to else []

    def state_dict(self) -> dict[str, Any]:
        """The state of all ranks. Raises: RuntimeError before `consolidate_state_dict`."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        found: dict[int, Any] = {}
        for numbers, state in zip(self._indices(), self._all_state_dicts):
            found.update({numbers[own]: value for own, value in state["state"].items()})
        groups, count = [], 0
        for group in self.param_groups:
            size = len(group["params"])
            groups.append({**group, "params": list(range(count, count + size))})
            count += size
        return {"state": {number: found[number] for number in sorted(found)}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of all ranks, of which this one keeps its part."""
        self._refuse_overlap("load_state_dict")
        self._copy_settings(state_dict["param_groups"], self.param_groups)
        own = self._indices()[self.rank]
        state = {
            place: state_dict["state"][number]
            for place, number in enumerate(own)
            if number in state_dict["state"]
        }
        groups, count = [], 0
        for group, params in zip(self.param_groups, self._partition[self.rank]):
            groups.append({**group, "params": list(range(count, count + len(params)))})
            count += len(params)
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state
        self._copy_settings(self.optim.param_groups, self.param_groups)

    # ---- Uneven inputs

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return _StepHook(self)

    @property
    def join_device(self) -> Any:
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group
