"""Callbacks for the import of other libraries, in either order. weft does not import the libraries itself."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from .warn import user_level

_waiting: dict[str, Callable[[ModuleType], None]] = {}


def when_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Call `action(module)` when the module `name` is imported, or now if it is imported already.

    Warns if the action raises an error because the version of the library is not supported.
    """
    module = sys.modules.get(name)
    if module is not None:
        _call(action, module)
        return
    _waiting[name] = action
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _call(action: Callable[[ModuleType], None], module: ModuleType) -> None:
    try:
        action(module)
    except (AttributeError, ImportError) as error:
        warnings.warn(
            f"weft does not know this version of {module.__name__}: {error}",
            RuntimeWarning,
            stacklevel=user_level(),
        )


class _Finder:
    """A finder that delegates to the ordinary finder, and runs the callbacks after loading a module."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            action = _waiting.pop(name, None)
            if action is not None:
                _call(action, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_finder = _Finder()
