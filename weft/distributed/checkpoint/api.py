"""`torch.distributed.checkpoint.api`: the error of saving and loading."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, TypeVar

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


def on_this_rank(step: str, function: Callable[[], T]) -> T:
    """What `function` returns. Raises: CheckpointException for its exceptions."""
    try:
        return function()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)
        raise CheckpointException(step, {0: (error, where)}) from error
