"""The decorator `dispatch`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .dispatcher import Dispatcher, MethodDispatcher

global_namespace: dict[str, Any] = {}

__all__ = ["dispatch", "ismethod"]


def dispatch(*types: Any, **kwargs: Any) -> Callable[[Callable], Any]:
    """Decorator: use the function for arguments of these types; a tuple of types stands for any of them.

    >>> @dispatch(int)
    ... def name(x):
    ...     return "int"
    >>> @dispatch(str)
    ... def name(x):
    ...     return "text"
    >>> name(1), name("a")
    ('int', 'text')
    """
    namespace = kwargs.get("namespace", global_namespace)
    types = tuple(types)

    def decorate(func: Callable) -> Any:
        name = func.__name__
        if ismethod(func):
            frame = inspect.currentframe()
            assert frame is not None and frame.f_back is not None
            found = frame.f_back.f_locals.get(name, MethodDispatcher(name))
        else:
            found = namespace.setdefault(name, Dispatcher(name))
        found.add(types, func)
        return found

    return decorate


def ismethod(func: Callable) -> bool:
    """Whether the function is a method: its first parameter is `self`."""
    return next(iter(inspect.signature(func).parameters), None) == "self"
