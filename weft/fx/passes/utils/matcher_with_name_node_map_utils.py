"""Patterns whose last result is a dict of names: matches tell which node each name stands for."""

from __future__ import annotations

from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """The pattern without the dict at the end of its result, and this dict."""
    output = gm.graph.output_node()
    values: Any = output.args[0]
    if not isinstance(values, (tuple, list)) or not values or not isinstance(values[-1], dict):
        raise AssertionError(
            "Expecting the graph module to return a tuple whose last element is a dict of names and nodes"
        )
    names = dict(values[-1])
    output.args = (tuple(values[:-1]),)
    gm.recompile()
    return gm, names


@compatibility(is_backward_compatible=False)
class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A SubgraphMatcher for a pattern that returns `(result, {"name": node, ...})`; see `InternalMatch.name_node_map`."""

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        self.pattern_gm = pattern_gm
        super().__init__(
            pattern_gm.graph,
            match_output,
            match_placeholder,
            remove_overlapping_matches,
            ignore_literals,
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern is, with the nodes by name."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map = {name: match.nodes_map[node] for name, node in self.name_node_map.items()}
        return matches
