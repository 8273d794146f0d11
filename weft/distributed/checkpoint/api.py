"""`torch.distributed.checkpoint.api`: the error of saving and loading."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from .._group import ProcessGroup
from .._objects import all_gather_object, broadcast_object_list
from .._world import _world

__all__ = ["CheckpointException"]

T = TypeVar("T")


class CheckpointException(BaseException):
    """What went wrong on each rank. As in PyTorch it is no Exception."""

    def __init__(self, msg: str, failures: dict[int, tuple[BaseException, Any]]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple[BaseException, Any]]:
        """The exception of each rank that failed, and where it was raised."""
        return self._failures

    def __str__(self) -> str:
        parts = [f"CheckpointException ranks:{list(self._failures)}"]
        for rank, (error, _) in self._failures.items():
            parts.append(f"(RANK {rank}) {type(error).__name__}: {error}")
        return "\n".join(parts)


class _Outcome(NamedTuple):
    """What a function has returned on a rank, or its exception and where it was raised."""

    value: Any
    failure: tuple[BaseException, Any] | None = None


def _tried(function: Callable[[], Any]) -> _Outcome:
    try:
        return _Outcome(function())
    except Exception as error:
        return _Outcome(None, (error, traceback.extract_tb(error.__traceback__)))


class Ranks:
    """The processes that save or load a checkpoint together: those of a group, or with `alone` this one."""

    def __init__(self, group: ProcessGroup | None, coordinator: int, alone: bool):
        self.group = None if alone else group or _world.default_pg
        self.rank = 0 if self.group is None else self.group.rank()
        self.size = 1 if self.group is None else self.group.size()
        self.coordinator = coordinator if self.size > 1 else 0

    @property
    def is_coordinator(self) -> bool:
        return self.rank == self.coordinator

    def on_each(self, step: str, function: Callable[[], T]) -> list[T]:
        """What `function` returns on each rank. Raises: CheckpointException on all ranks with the exceptions of those that failed."""
        outcomes = [_tried(function)]
        if self.size > 1:
            own, outcomes = outcomes[0], outcomes * self.size
            all_gather_object(outcomes, own, self.group)
        _raise(step, dict(enumerate(outcomes)))
        return [each.value for each in outcomes]

    def on_coordinator(self, step: str, function: Callable[[], T]) -> T:
        """What `function` returns on one rank, on all of them. Raises: CheckpointException on all ranks."""
        outcomes = [_tried(function) if self.is_coordinator else _Outcome(None)]
        if self.size > 1:
            broadcast_object_list(outcomes, group=self.group, group_src=self.coordinator)
        _raise(step, {self.coordinator: outcomes[0]})
        return outcomes[0].value


def _raise(step: str, outcomes: dict[int, _Outcome]) -> None:
    failures = {rank: each.failure for rank, each in outcomes.items() if each.failure is not None}
    if failures:
        raise CheckpointException(step, failures) from next(iter(failures.values()))[0]
