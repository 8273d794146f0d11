"""Groups of nodes that come from one module or function of the program."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
@dataclass
class SourcePartition:
    """The nodes of one call of a module or function."""

    nodes: list[Node]
    source: Any  # the class of the module, or the function
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


@compatibility(is_backward_compatible=False)
def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """The groups of nodes that come from the wanted modules and functions, as `meta["source_fn_stack"]` says."""
    groups: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack") or node.meta.get("torch_fn")
        if not stack:
            continue
        name, source = stack[-1] if isinstance(stack, list) else stack
        if source in wanted_sources:
            groups.setdefault(source, {}).setdefault(name, []).append(node)
    found: dict[Any, list[SourcePartition]] = {}
    for source, partitions in groups.items():
        for nodes in partitions.values():
            if filter_fn is None or all(map(filter_fn, nodes)):
                found.setdefault(source, []).append(_partition(nodes, source))
    return found


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    inputs: dict[Node, None] = {}
    params: dict[Node, None] = {}
    outputs: dict[Node, None] = {}
    for node in nodes:
        if node.op == "get_attr":
            params[node] = None
        for used in node.all_input_nodes:
            if used not in inside:
                (params if used.op == "get_attr" else inputs)[used] = None
        if any(user not in inside for user in node.users):
            outputs[node] = None
    return SourcePartition(nodes, source, list(inputs), list(outputs), list(params))


@compatibility(is_backward_compatible=False)
def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second group uses a value of the first one."""
    first = set(subgraph1.nodes)
    return any(used in first for node in subgraph2.nodes for used in node.all_input_nodes)
