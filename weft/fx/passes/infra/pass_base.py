"""Passes as objects."""

from __future__ import annotations

import abc
from collections import namedtuple

from ..._compatibility import compatibility
from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(namedtuple("PassResult", ["graph_module", "modified"])):  # noqa: PYI024 (PyTorch's signature)
    """What a pass gives back: the module, and whether the pass changed it."""

    __slots__: tuple[str, ...] = ()

    def __new__(cls, graph_module: GraphModule, modified: bool) -> PassResult:
        return super().__new__(cls, graph_module, modified)


@compatibility(is_backward_compatible=False)
class PassBase(abc.ABC):
    """A pass with checks before and after it. Subclasses define `call`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Check what the pass requires, carry it out, and check what it ensures."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """What the pass does."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 (subclasses may leave it)
        """Called before the pass: raise if the module is not as it must be."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027 (as above)
        """Called after the pass."""
