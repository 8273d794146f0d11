"""`torch.onnx.symbolic_helper`: how functions that export an operator say what their arguments are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Function = TypeVar("_Function", bound=Callable)


def parse_args(*arg_descriptors: str) -> Callable[[_Function], _Function]:
    """Decorator: the arguments of a function behind the graph are of these kinds ("v": a value, "i", "f", "s", "is", ...)."""

    def decorate(function: _Function) -> _Function:
        function._arg_descriptors = arg_descriptors  # type: ignore[attr-defined]
        return function

    return decorate
