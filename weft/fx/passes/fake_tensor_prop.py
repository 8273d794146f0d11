"""`FakeTensorProp`: what a graph gives for inputs of some metadata, without computing it."""

from __future__ import annotations

from typing import Any

from ...core import pytree
from ...core.tensor import Tensor
from ...library.fake_tensor import FakeTensor, FakeTensorMode
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a graph with FakeTensors, and writes the result of each node into its `meta["val"]`.

    mode: the mode of the FakeTensors; a new one if None.

    >>> import weft as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x @ x)
    >>> FakeTensorProp(traced).propagate(torch.ones(4, 4))
    FakeTensor(..., size=(4, 4))
    """

    def __init__(
        self, module: GraphModule, mode: FakeTensorMode | None = None, *, check_consistency: bool = True
    ) -> None:
        super().__init__(module)
        self._mode = mode or FakeTensorMode()

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        if result is not None:
            n.meta["val"] = pytree.tree_map_only(Tensor, self._snapshot, result)
        return result

    def _snapshot(self, tensor: Tensor) -> FakeTensor:
        return self._mode.from_tensor(tensor).detach()  # type: ignore[return-value]

    def propagate(self, *args: Any) -> Any:
        """Run the graph with FakeTensors like the tensors of `args`, and return its result."""
        return self.propagate_dont_convert_inputs(*pytree.tree_map_only(Tensor, self._mode.from_tensor, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph with these arguments, which are FakeTensors of the mode."""
        with self._mode:
            return super().run(*args)
