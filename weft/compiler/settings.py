"""Modules of settings: attributes with defaults, which programs set, patch for a while, save and load."""

from __future__ import annotations

import functools
import pickle
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class ConfigModule(ModuleType):
    """A module whose public names are settings. Setting a name that does not exist raises an error."""

    _config: dict[str, Any]
    _deleted: set[str]  # until they are set again, as `unittest.mock.patch` does at its end

    def __getattr__(self, name: str) -> Any:
        if name in self._config and name not in self._deleted:
            return self._config[name]
        if any(each.startswith(f"{name}.") for each in self._config):
            return Group(self, name)
        raise AttributeError(f"{self.__name__}.{name} does not exist")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__"):
            super().__setattr__(name, value)
        elif name in self._config:
            self._config[name] = value
            self._deleted.discard(name)
        else:
            raise AttributeError(f"{self.__name__}.{name} does not exist")

    def __delattr__(self, name: str) -> None:
        if name not in self._config:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        self._deleted.add(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._config]

    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> _Patch:
        """A context, or a decorator, in which settings have other values.

        `patch(name=value)`, `patch("name", value)` or `patch({"name": value})`.
        """
        if isinstance(arg1, str):
            changes = {arg1: arg2}
        else:
            changes = dict(arg1 or {})
        return _Patch(self, {**changes, **kwargs})

    def get_config_copy(self) -> dict[str, Any]:
        """The settings and their values."""
        return dict(self._config)

    shallow_copy_dict = to_dict = get_config_copy

    def save_config(self) -> bytes:
        """The settings as bytes."""
        return pickle.dumps(self._config, protocol=2)

    def load_config(self, maybe_pickled_config: bytes | dict[str, Any]) -> None:
        """Restore settings that `save_config` or `get_config_copy` returned."""
        given = maybe_pickled_config
        self._config.update(pickle.loads(given) if isinstance(given, bytes) else given)


class Group:
    """The settings of a module that begin with the same word: `config.triton.cudagraphs`."""

    def __init__(self, config: ConfigModule, name: str):
        self.__dict__.update(_module=config, _prefix=name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, f"{self._prefix}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, f"{self._prefix}.{name}", value)


class _Patch:
    def __init__(self, config: ConfigModule, changes: dict[str, Any]):
        self.config, self.changes = config, changes
        self.outer: list[dict[str, Any]] = []

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapper

    def __enter__(self) -> None:
        self.outer.append({name: getattr(self.config, name) for name in self.changes})
        for name, value in self.changes.items():
            setattr(self.config, name, value)

    def __exit__(self, *args: Any) -> None:
        for name, value in self.outer.pop().items():
            setattr(self.config, name, value)


def install_config_module(module: ModuleType, settings: dict[str, Any]) -> None:
    """Turn a module into a `ConfigModule`."""
    module.__dict__["_config"] = settings
    module.__dict__["_deleted"] = set()
    module.__class__ = ConfigModule


def settings_of(text: str) -> dict[str, Any]:
    """Settings from lines `name name name: value`."""
    import ast

    found = {}
    for line in text.strip().splitlines():
        names, _, value = line.rpartition(":")
        for name in names.split():
            found[name] = ast.literal_eval(value.strip())
    return found


def install(name: str, text: str) -> None:
    """Make the module `name` one of the settings that the lines of `text` list."""
    install_config_module(sys.modules[name], settings_of(text))
