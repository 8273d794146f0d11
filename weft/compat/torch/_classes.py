"""`torch.classes`: classes that C++ extensions register. There are none, and asking for one says so."""

from __future__ import annotations

import types
from typing import Any, NoReturn

from weft.library.namespaces import ops


class _ClassNamespace(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(f"torch.classes.{name}")
        self.name = name

    def __getattr__(self, attr: str) -> NoReturn:
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! Ensure that it is registered via "
            "torch::class_"
        )


class _Classes(types.ModuleType):
    """A namespace for each extension, made when it is asked for."""

    __file__ = "_classes.py"

    def __init__(self) -> None:
        super().__init__("torch.classes")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _ClassNamespace(name)
        setattr(self, name, namespace)
        return namespace

    @property
    def loaded_libraries(self) -> set[str]:
        """The files that `load_library` loaded."""
        return ops.loaded_libraries

    def load_library(self, path: str) -> None:
        """As `torch.ops.load_library`."""
        ops.load_library(path)


classes = _Classes()
