"""Join: training loops in which processes have different numbers of inputs.

In each iteration all processes count those that still have inputs. A process without inputs takes part in this, and calls the collectives
that the iterations of the others call (`JoinHook.main_hook`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple

from ...ops.creation.creation import ones, zeros
from .._collectives import all_reduce
from .._group import ProcessGroup, Work

__all__ = ["JoinHook", "Joinable", "Join"]


class JoinHook:
    """What a process does that has no inputs left, while others have."""

    def main_hook(self) -> None:
        """Called again and again, in place of an iteration, while another process has inputs."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once, when no process has inputs left."""


class _JoinConfig(NamedTuple):
    """What the context manager tells its objects."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        return _JoinConfig(enable=False, throw_on_early_termination=False, is_first_joinable=False)


class Joinable(ABC):
    """The base of classes that can be used within `Join`."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process does that has no inputs left. The keyword arguments are those of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the tensors that are sent."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """The group that takes part."""


class Join:
    """A context manager around a loop with uneven inputs. The `joinables` must share device and process group.

    >>> import weft as torch
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    >>> with dist.algorithms.Join([model]):
    ...     model(torch.ones(1, 2)).sum().backward()
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        for index, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, index == 0)
        for name in ("join_process_group", "join_device"):
            first, *rest = (getattr(joinable, name) for joinable in joinables)
            if any(each != first for each in rest):
                raise ValueError(f"Using join context manager with multiple {name.removeprefix('join_')}s")
        self._process_group: ProcessGroup = joinables[0].join_process_group

    def __enter__(self) -> Join:
        return self

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._enable or type is not None:
            return
        is_last = True
        while self._count_active():
            if self._throw_on_early_termination:
                _is_stopped(self._process_group, True)
                raise RuntimeError(f"Rank {self._process_group.rank()} exhausted all inputs.")
            is_last = False
            for hook in self._join_hooks:
                hook.main_hook()
        for hook in self._join_hooks:
            hook.post_hook(is_last)

    def _count_active(self) -> int:
        """How many processes have begun another iteration; this one has not."""
        count = zeros(1)
        all_reduce(count, group=self._process_group)
        return int(count.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Say that this process begins an iteration. The first of the objects returns a Work to wait for."""
        config = getattr(joinable, "_join_config", None)
        assert config is not None, (
            f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
        )
        if not config.enable or not config.is_first_joinable:
            return None
        group = joinable.join_process_group
        work = all_reduce(ones(1), group=group, async_op=True)
        if config.throw_on_early_termination and _is_stopped(group, False):
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _is_stopped(group: ProcessGroup, stop: bool) -> bool:
    """Whether one of the processes of the group stops, as all of them learn."""
    stopped = ones(1) if stop else zeros(1)
    all_reduce(stopped, group=group)
    return bool(stopped.item())
