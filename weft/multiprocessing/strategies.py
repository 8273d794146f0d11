"""How memory is handed to other processes. There is one way: by its file descriptor."""

from __future__ import annotations

_STRATEGIES = {"file_descriptor"}


def get_all_sharing_strategies() -> set[str]:
    """The strategies that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The strategy in use."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is handed to other processes.

    Raises: AssertionError for an unknown strategy, NotImplementedError for PyTorch's "file_system".
    """
    if new_strategy == "file_system":
        raise NotImplementedError(
            'the sharing strategy "file_system"; where "file_descriptor" runs out of descriptors, raise `ulimit -n`'
        )
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
