"""Computing each thing once."""

from __future__ import annotations

from typing import Any

from .....core.registry import FUNCTIONS
from .....library.qualified_name import public_name
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import _RANDOM, Node
from ...infra.pass_base import PassBase, PassResult


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802 (PyTorch's name)
    """The functions whose calls are never merged: those that draw random numbers, and those that write."""
    return {
        function
        for name, function in FUNCTIONS.items()
        if name in _RANDOM or (name.endswith("_") and not name.endswith("__"))
    }


class CSEPass(PassBase):
    """Calls of the same function with the same arguments become one node. `banned_ops` are never merged.

    >>> import weft as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x))
    >>> print(CSEPass()(traced).graph_module.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + relu;  relu = None
        return add
    """

    def __init__(self, banned_ops: Any = None) -> None:
        self.banned_ops = set() if banned_ops is None else banned_ops
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        new_graph = Graph()
        copies: dict[Node, Node] = {}
        seen: dict[Any, Node] = {}
        modified = False
        for node in graph_module.graph.nodes:
            key = self._key(node, copies)
            if key is not None and key in seen:
                copies[node] = seen[key]
                modified = True
                continue
            copies[node] = new_graph.node_copy(node, lambda each: copies[each])
            if key is not None:
                seen[key] = copies[node]
        new_graph._codegen = graph_module.graph._codegen
        return PassResult(GraphModule(graph_module, new_graph), modified)

    def _key(self, node: Node, copies: dict[Node, Node]) -> Any:
        """What nodes that compute the same have in common; None for nodes that are never merged."""
        if node.op in ("placeholder", "output", "call_module"):
            return None
        if node.op == "call_method" and str(node.target).endswith("_"):
            return None
        if node.is_impure() or node.target in self.banned_ops or _writes(node):
            return None
        try:
            key = (node.op, node.target, _hashable(node.args, copies), _hashable(node.kwargs, copies))
            hash(key)
        except TypeError:
            return None
        return key


def _writes(node: Node) -> bool:
    name = public_name(node.target) or ""
    return (name.endswith("_") and not name.endswith("__")) or node.kwargs.get("out") is not None


def _hashable(value: Any, copies: dict[Node, Node]) -> Any:
    """A value that is equal for equal arguments. 1, 1.0 and True are different ones."""
    if isinstance(value, Node):
        return copies[value]
    if isinstance(value, (tuple, list)):
        return (type(value), *(_hashable(each, copies) for each in value))
    if isinstance(value, dict):
        return (dict, *((key, _hashable(each, copies)) for key, each in value.items()))
    if isinstance(value, slice):
        return (slice, *(_hashable(each, copies) for each in (value.start, value.stop, value.step)))
    return (type(value), value)
