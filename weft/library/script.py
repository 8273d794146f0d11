"""Classes of TorchScript's compiled objects and graphs, with which programs annotate and ask `isinstance`.

Only ScriptObject has instances, because weft runs programs as they are and compiles no TorchScript.
"""

from __future__ import annotations

from typing import Any

from weft.layouts.quantized.script_object import ScriptObject as ScriptObject


class _Part:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise NotImplementedError(
            f"torch._C.{name}: weft does not compile TorchScript; torch.fx has graphs of Python programs"
        )


class Graph(_Part):
    """A compiled function's operations."""


class Node(_Part):
    """An operation of a Graph."""


class Value(_Part):
    """A result of an operation of a Graph."""


class Block(_Part):
    """Operations of a Graph that are run together."""


class Code(_Part):
    """The instructions of a compiled function."""


class Gradient(_Part):
    """The derivative of a Graph."""


class TracingState(_Part):
    """A trace that is being recorded."""


class ScriptClass(_Part):
    """A compiled class."""


class ScriptFunction:
    """A function that TorchScript compiled or traced. There is none: functions stay Python's."""

    __module__ = "torch.jit"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("ScriptFunction: No constructor defined!")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("torch.jit.ScriptFunction: weft does not compile TorchScript")


class ScriptMethod(_Part):
    """A compiled method."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("torch.jit.ScriptMethod: weft does not compile TorchScript")


class ScriptModule(_Part):
    """A compiled module; `torch.jit.ScriptModule` is the class of modules around one."""


class ScriptDict(_Part):
    """A dictionary of a compiled program."""


class ScriptList(_Part):
    """A list of a compiled program."""
