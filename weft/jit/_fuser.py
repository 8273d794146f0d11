"""Settings of TorchScript's compiler, which are kept and have no effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context; it has no effect on programs that run as they are."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A context for a fuser of TorchScript; it has no effect on programs that run as they are.

    Raises: Exception for names of no fuser.
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3", "none"):
        raise Exception(f"unrecognized fuser option (name: {name})")  # noqa: TRY002 (PyTorch's)
    yield


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keep a setting of TorchScript's compiler; gives the one before."""
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


def last_executed_optimized_graph() -> Any:
    """None: no graph was run."""
