"""Classes of TorchScript's compiled objects and graphs: programs annotate with them and ask `isinstance`. There are none."""

from __future__ import annotations

from typing import Any


class _Never:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        raise NotImplementedError(
            f"torch._C.{name}: weft does not compile TorchScript, programs run as they are"
        )


class Graph(_Never):
    """A compiled function's operations."""


class Node(_Never):
    """An operation of a Graph."""


class Value(_Never):
    """A result of an operation of a Graph."""


class Block(_Never):
    """Operations of a Graph that are run together."""


class ScriptClass(_Never):
    """A compiled class."""


class ScriptMethod(_Never):
    """A compiled method."""


class ScriptModule(_Never):
    """A compiled module; `torch.jit.ScriptModule` is the class of modules around one."""


class ScriptObject(_Never):
    """An instance of a compiled class."""


class ScriptDict(_Never):
    """A dictionary of a compiled program."""


class ScriptList(_Never):
    """A list of a compiled program."""
