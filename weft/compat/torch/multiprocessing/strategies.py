"""How memory is handed to other processes: always by its file descriptor, never by a name that could be left behind."""

from __future__ import annotations

import sys

_STRATEGIES = {"file_descriptor", "file_system"}
_current = "file_descriptor"

_MOST_ON_MACOS = (
    10240  # OPEN_MAX, above which macOS refuses a limit although it reports none (man 2 setrlimit)
)


def get_all_sharing_strategies() -> set[str]:
    """The strategies that `set_sharing_strategy` takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The strategy in use."""
    return _current


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is handed to other processes.

    PyTorch's "file_system" names files, for programs that would run out of descriptors: two for each shared storage.
    Here it raises the number of descriptors that the process may have as far as the system allows.

    Raises: AssertionError for an unknown strategy.
    """
    global _current
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _current = new_strategy
    if new_strategy == "file_system" and sys.platform != "win32":  # which has no such limit
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        is_refused = sys.platform == "darwin" and most == resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_NOFILE, (_MOST_ON_MACOS if is_refused else most, most))
