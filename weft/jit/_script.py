"""`torch.jit.script`, which returns its argument, and the classes of TorchScript's objects."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.warn import user_level
from ..nn.module import Module

__all__ = ["Attribute", "RecursiveScriptModule", "ScriptModule", "interface", "script"]


class Attribute:
    """`Attribute(value, type)` is the value: the type is for TorchScript's compiler."""

    def __new__(cls, value: Any, type: Any) -> Any:  # noqa: D102
        return value

    def __init__(self, value: Any, type: Any) -> None:  # names the parameters
        pass


class ScriptWarning(Warning):
    """A warning of TorchScript's compiler."""


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: list[tuple] | dict[Callable, list[tuple]] | None = None,
) -> Any:
    """`obj`: functions, modules and classes run as they are.

    >>> import weft as torch
    >>> @torch.jit.script
    ... def double(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> double(torch.ones(1))
    tensor([2.])
    """
    if optimize is not None:
        warnings.warn(
            "`optimize` is deprecated and has no effect. Use `with torch.jit.optimized_execution()` instead",
            category=FutureWarning,
            stacklevel=user_level(),
        )
    return obj


def script_method(fn: Callable) -> Callable:
    """`fn`."""
    return fn


def interface(obj: Any) -> Any:
    """`obj`, a class that declares methods."""
    return obj


class ScriptModule(Module):
    """The base of modules that are written for TorchScript. They run as other modules do."""


class RecursiveScriptModule(ScriptModule):
    """A module that `torch.jit.load` read: its parameters, buffers, submodules and attributes, and the text of its methods.

    Raises: NotImplementedError when it is called, because weft does not run TorchScript.
    """

    def __init__(self, cpp_module: Any = None) -> None:
        super().__init__()
        self.__dict__["_read"] = cpp_module  # a _Loaded of _serialization.py

    @property
    def original_name(self) -> str:
        """The name of the Python class that was compiled."""
        read = self.__dict__.get("_read")
        return type(self).__name__ if read is None else read.name

    @property
    def code(self) -> str:
        """The TorchScript text of `forward`."""
        read = self.__dict__["_read"]
        return "" if read is None else read.method("forward")

    def extra_repr(self) -> str:
        return "" if self.__dict__.get("_read") is None else f"original_name={self.original_name}"

    def forward(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise self._refusal("forward")

    def save(self, f: Any, **kwargs: Any) -> NoReturn:
        """Raises: NotImplementedError, because weft does not write TorchScript."""
        from ._serialization import save

        save(self, f)

    def _refusal(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{self.original_name}.{method}: weft reads the weights of TorchScript files and does not run their code. Build the "
            "Python class of the module and give it this module's state_dict(); `code` is the text of forward"
        )

    def __getattr__(self, name: str) -> Any:
        read = self.__dict__.get("_read")
        try:
            return super().__getattr__(name)
        except AttributeError:
            if read is not None and read.has_method(name):

                def method(*args: Any, **kwargs: Any) -> NoReturn:
                    raise self._refusal(name)

                return method
            raise


class RecursiveScriptClass:
    """An object of a class that TorchScript compiled. There is none: classes stay Python's."""

    def __init__(self, cpp_class: Any) -> None:
        raise NotImplementedError("RecursiveScriptClass: weft does not compile classes; use the Python class")


class CompilationUnit:
    """Functions in TorchScript's own text.

    Raises: NotImplementedError for any text, because weft does not compile it.
    """

    __module__ = "torch.jit"

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        if lang:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> NoReturn:
        """Raises: NotImplementedError."""
        raise NotImplementedError(
            "torch.jit.CompilationUnit: weft does not compile TorchScript text; write the functions in Python"
        )


class _ScriptProfile:
    """Times of the lines of TorchScript programs, of which none runs."""

    def enable(self) -> None:
        """Nothing to begin."""

    def disable(self) -> None:
        """Nothing to end."""

    def dump_string(self) -> str:
        """An empty table."""
        return ""

    def dump(self) -> None:
        """Print the empty table."""
        print(self.dump_string())


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def create_script_list(obj: list, type_hint: Any = None) -> list:
    """`obj`."""
    return obj


def create_script_dict(obj: dict) -> dict:
    """`obj`."""
    return obj
