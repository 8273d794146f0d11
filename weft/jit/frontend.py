"""The errors of TorchScript's compiler, which programs catch. Nothing is compiled, so nothing raises them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn


class FrontendError(Exception):
    """TorchScript cannot compile a program."""

    def __init__(self, source_range: Any, msg: str) -> None:
        self.source_range, self.msg = source_range, msg
        self.error_report = msg

    def __str__(self) -> str:
        return f"{self.msg}:\n{self.source_range}"


class NotSupportedError(FrontendError):
    """A part of Python that TorchScript does not have."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that TorchScript does not have."""

    def __init__(self, ctx: Any, offending_node: Any, reason: str = "") -> None:
        name = type(offending_node).__name__
        super().__init__(ctx, f"{reason}{' ' if reason else ''}{name} aren't supported")


class FrontendTypeError(FrontendError):
    """A type that TorchScript cannot use."""


def is_reserved_name(name: str) -> bool:
    """Whether TorchScript keeps a name for itself."""
    return name.startswith("__torch") or name.startswith("torch.")


def get_default_args(fn: Callable | None) -> dict[str, Any]:
    """The arguments of a function that have defaults, with the defaults."""
    if fn is None:
        return {}
    return {
        name: each.default
        for name, each in inspect.signature(fn).parameters.items()
        if each.default is not inspect.Parameter.empty
    }


def get_jit_def(
    fn: Callable, def_name: str, self_name: str | None = None, is_classmethod: bool = False
) -> NoReturn:
    """Raises: NotImplementedError, because nothing is compiled."""
    raise NotImplementedError("torch.jit.frontend.get_jit_def: weft does not compile TorchScript")


def get_jit_class_def(cls: type, self_name: str) -> NoReturn:
    """Raises: NotImplementedError, because nothing is compiled."""
    raise NotImplementedError("torch.jit.frontend.get_jit_class_def: weft does not compile TorchScript")
