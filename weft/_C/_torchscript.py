"""The parts of TorchScript programs, as classes to ask about: weft compiles no such programs, so there are no objects of them."""

from __future__ import annotations


class _Part:
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            f"torch._C.{type(self).__name__}: weft has no TorchScript programs; torch.fx has graphs of Python programs"
        )


class Graph(_Part):
    """The graph of a TorchScript function."""


class Node(_Part):
    """An operation of such a graph."""


class Value(_Part):
    """A value of such a graph."""


class Block(_Part):
    """A part of such a graph."""


class Code(_Part):
    """The instructions of a TorchScript function."""


class Gradient(_Part):
    """The derivative of such a graph."""


class ScriptObject(_Part):
    """An object of a class that TorchScript compiled."""


class ScriptMethod(_Part):
    """A method that TorchScript compiled."""


class TracingState(_Part):
    """A trace that is being recorded."""
