"""Replacing each place in a graph that looks like a pattern.

>>> import weft as torch
>>> traced = torch.fx.symbolic_trace(lambda x, y: torch.add(torch.mul(x, y), 1))
>>> matches = replace_pattern(traced, lambda a, b: torch.mul(a, b), lambda a, b: torch.sub(a, b))
>>> print(traced.code.strip())
def forward(self, x, y):
    sub = torch.sub(x, y);  x = y = None
    add = torch.add(sub, 1);  sub = None
    return add
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn import Module
from ._compatibility import compatibility
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from .passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Filter = Callable[[InternalMatch, Graph, Graph], bool]


@compatibility(is_backward_compatible=True)
class Match(NamedTuple):
    """A place where the pattern was."""

    anchor: Node  # the last node of the pattern
    nodes_map: dict[Node, Node]  # nodes of the pattern -> nodes of the graph


@compatibility(is_backward_compatible=False)
@dataclass
class ReplacedPatterns:
    """A place where the pattern was, and what stands there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give `gm` the attributes that the new nodes refer to, and take away submodules that no node refers to any more."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        own, other = _attribute(gm, str(node.target)), _attribute(replacement, str(node.target))
        if own is not None:
            continue
        if other is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {node.target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        if node.op == "call_module":
            gm.add_submodule(str(node.target), copy.deepcopy(other))
        else:
            prefix, _, field = str(node.target).rpartition(".")
            parent = gm.get_submodule(prefix)
            setattr(parent, field, copy.deepcopy(other))
    gm.graph.lint()


def _attribute(module: Module, path: str) -> Any:
    found: Any = module
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


@compatibility(is_backward_compatible=True)
def replace_pattern(
    gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule
) -> list[Match]:
    """Put `replacement` wherever `pattern` is in the graph of `gm`. Both are functions or modules with equal parameters.

    The pattern matches by functions and arguments; its parameters stand for anything. Nothing but its results may be
    used outside of the place. Places do not overlap: the first one counts. Returns the places.
    """
    return [
        Match(anchor=each.anchor, nodes_map=each.nodes_map)
        for each in _replace_pattern(gm, pattern, replacement)
    ]


@compatibility(is_backward_compatible=False)
def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, where all filters `(match, graph, pattern)` say True.

    `replacement_callback(match, graph, pattern)` returns the graph to put there, instead of `replacement`.
    """
    return _replace_pattern(
        gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match
    )


def _graph_of(source: Any) -> Graph:
    if isinstance(source, GraphModule):
        return source.graph
    return source if isinstance(source, Graph) else symbolic_trace(source).graph


def _matcher_of(pattern: Any, ignore_literals: bool) -> SubgraphMatcher:
    if isinstance(pattern, GraphModule) and _returns_names(pattern.graph):
        return SubgraphMatcherWithNameNodeMap(pattern, ignore_literals=ignore_literals)
    return SubgraphMatcher(
        _graph_of(pattern),
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=ignore_literals,
    )


def _returns_names(graph: Graph) -> bool:
    result: Any = graph.output_node().args[0]
    return isinstance(result, (tuple, list)) and bool(result) and isinstance(result[-1], dict)


def _replace_pattern(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    graph = gm.graph
    matcher = _matcher_of(pattern, ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(allows(match, graph, matcher.pattern) for allows in match_filters or ())
    ]
    if replacement is None and replacement_callback is None:
        raise AssertionError(
            "Must provide either replacement or replacement_callback when calling subgraph_rewriter._replace_pattern"
        )
    common = _graph_of(replacement) if replacement is not None else None
    done: list[ReplacedPatterns] = []
    # Results that were replaced already -> what they are now: an input of a later place may be one.
    changed: dict[Node, Node] = {}
    for match in matches:
        new_graph = common
        if replacement_callback is not None:
            new_graph = replacement_callback(match, graph, matcher.pattern)
        assert new_graph is not None
        new_nodes = _put(graph, match, new_graph, changed)
        for pattern_node in reversed(matcher.pattern.nodes):
            if pattern_node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[pattern_node])
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, new_nodes))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _put(graph: Graph, match: InternalMatch, new_graph: Graph, changed: dict[Node, Node]) -> list[Node]:
    """Copy `new_graph` to the place of a match, and let it be used instead. Returns the new nodes."""
    inputs = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"The pattern takes {len(match.placeholder_nodes)} arguments and its replacement {len(inputs)}: they must "
            "have the same parameters"
        )
    val_map: dict[Node, Any] = {}
    for input_node, given in zip(inputs, match.placeholder_nodes):
        val_map[input_node] = changed.get(given, given) if isinstance(given, Node) else given
    for pattern_node, node in match.nodes_map.items():
        if pattern_node.op == "placeholder" and isinstance(node, Node):
            match.nodes_map[pattern_node] = changed.get(node, node)
    users = {user for node in match.returning_nodes for user in node.users}
    if not users:
        raise AssertionError("The returning_nodes should have at least one user node")
    first_user = next(node for node in graph.nodes if node in users)
    given_nodes = list(val_map.values())
    with graph.inserting_before(first_user):
        results: Any = graph.graph_copy(new_graph, val_map)
    if isinstance(results, Node):
        results = (results,)
    new_nodes = [each for each in val_map.values() if isinstance(each, Node) and each not in given_nodes]
    if len(match.returning_nodes) != len(results):
        raise AssertionError(
            f"The pattern has {len(match.returning_nodes)} results and its replacement {len(results)}"
        )
    for old, new in zip(match.returning_nodes, results):
        old.replace_all_uses_with(new)
        changed[old] = new
    return new_nodes
