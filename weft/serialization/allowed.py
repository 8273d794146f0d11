"""The globals that users and other modules allow in files, in addition to the default ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .names import torch_name

# By identity, because a class need not be hashable.
_added: dict[int, Any] = {}
_of_weft: dict[int, Any] = {}  # what modules of weft have added, which users do not remove


def add_globals_of_weft(values: Iterable[Callable]) -> None:
    """Allow classes that check the states which files give them. Their module calls this, so that loading a file imports nothing."""
    _of_weft.update((id(each), each) for each in values)


def add_safe_globals(safe_globals: Iterable[Callable | tuple[Callable, str]]) -> None:
    """Allow these functions and classes in files that are loaded with `weights_only=True`.

    A tuple (object, full name) is for objects that files refer to by another name.

    >>> import collections, weft as torch
    >>> torch.serialization.add_safe_globals([collections.defaultdict])
    >>> torch.serialization.get_safe_globals()
    [<class 'collections.defaultdict'>]
    >>> torch.serialization.clear_safe_globals()
    """
    _added.update((_key(each), each) for each in safe_globals)


def get_safe_globals() -> list[Callable | tuple[Callable, str]]:
    """The objects that `add_safe_globals` has added."""
    return list(_added.values())


def clear_safe_globals() -> None:
    """Remove the objects that `add_safe_globals` has added."""
    _added.clear()


class safe_globals:  # noqa: N801 (PyTorch's name)
    """A context in which these objects are allowed in files that are loaded with `weights_only=True`."""

    def __init__(self, safe_globals: Iterable[Callable | tuple[Callable, str]]):
        self.safe_globals = list(safe_globals)

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception: Any) -> None:
        for each in self.safe_globals:
            _added.pop(_key(each), None)


def _key(entry: Any) -> Any:
    return (id(entry[0]), entry[1]) if isinstance(entry, tuple) and len(entry) == 2 else id(entry)


def added_globals() -> dict[str, Any]:
    """The objects that users have added, by the full name that files use.

    Raises: ValueError or TypeError for entries that are neither an object nor an object and its name.
    """
    found = {}
    for entry in (*_of_weft.values(), *_added.values()):
        if not isinstance(entry, tuple):
            # A file has PyTorch's name for a class of weft.
            found[".".join(torch_name(entry) or (entry.__module__, entry.__qualname__))] = entry
            continue
        if len(entry) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}"
            )
        if type(entry[1]) is not str:
            raise TypeError(
                f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}"
            )
        found[entry[1]] = entry[0]
    return found
