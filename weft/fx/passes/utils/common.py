"""Graphs that become modules of their own, and graphs that are the same."""

from __future__ import annotations

from typing import Any

from ....nn import Module
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from .matcher_utils import SubgraphMatcher

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


@compatibility(is_backward_compatible=False)
class HolderModule(Module):
    """A module that holds the modules of a dict."""

    def __init__(self, d: dict[str, Module]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


@compatibility(is_backward_compatible=False)
def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """A GraphModule of `subgraph`, whose nodes refer to attributes of `gm`.

    Returns it and, for each attribute that it takes from `gm`, the path that the attribute has in it.
    """
    submodule = HolderModule({})
    new_path: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target = str(node.target)
        *path, name = target.split(".")
        current: Any = submodule
        source: Any = gm
        for item in path:
            if not hasattr(current, item):
                current.add_module(item, HolderModule({}))
            current, source = getattr(current, item), getattr(source, item)
        setattr(current, name, getattr(source, name))
        new_path[target] = f"{comp_name}.{target}" if comp_name else target
    return GraphModule(submodule, subgraph, class_name), new_path


@compatibility(is_backward_compatible=False)
def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs do the same, whatever the names of their nodes."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0
