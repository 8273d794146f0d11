"""Modules that `fully_shard` or `replicate` was applied to: they stay themselves, and their class has more methods."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn


class Extension:
    """What such a function adds to the class of a module; the base of the class with the methods."""

    # Their names are long, because modules have attributes of their own.
    _extension_prefix: ClassVar[str]  # of the names of the classes
    _extension_function: ClassVar[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of the class as it was before."""
        return cls.__bases__[1](*args, **kwargs)

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise AssertionError(
            f"{self._extension_prefix} does not support deepcopy of a module that {self._extension_function}() was applied to. "
            "Copy the module before, or load its state dict into another one."
        )


_classes: dict[tuple[type, type], type] = {}


def extended(cls: type, extension: type[Extension]) -> type:
    """The class of modules with the methods of a class and of an Extension."""
    if (cls, extension) not in _classes:
        name = f"{extension._extension_prefix}{cls.__name__}"
        _classes[cls, extension] = type(name, (extension, cls), {"__module__": cls.__module__})
    return _classes[cls, extension]
