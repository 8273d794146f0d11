"""Finding a pattern, which is a small graph, in a graph."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

from ....core.tensor import Tensor
from ....library.namespaces import OpOverload
from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@compatibility(is_backward_compatible=False)
@dataclass
class InternalMatch:
    """One place where the pattern was found."""

    anchors: list[Node]  # the nodes of the pattern from which the search went upward
    nodes_map: dict[Node, Node] = field(
        default_factory=dict
    )  # node of the pattern -> node of the graph, or a literal
    placeholder_nodes: list[Node] = field(default_factory=list)  # what the inputs of the pattern are
    returning_nodes: list[Node] = field(default_factory=list)  # what the results of the pattern are
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            anchors=self.anchors,
            nodes_map=self.nodes_map.copy(),
            placeholder_nodes=self.placeholder_nodes.copy(),
            returning_nodes=self.returning_nodes.copy(),
        )


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Finds `pattern` in graphs.

    Inputs of the pattern match any node, or nodes of the same kind with `match_placeholder`. `match_output` lets the
    pattern end where the graph ends. `ignore_literals` lets numbers and strings in the pattern match any others.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users:
                raise AssertionError(
                    f"SubgraphMatcher cannot be initialized with an pattern with dead code: nothing uses {node}"
                )
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = pattern.output_node()
        # The results of the pattern: users outside of the match may use them.
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        if match_output:
            self.pattern_anchors = [output]
        else:
            # A result that another one is computed from is found on the way.
            self.pattern_anchors = [node for node in output.all_input_nodes if len(node.users) == 1]

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether two attributes are of one kind."""
        first, second = _attribute(pn), _attribute(gn)
        if isinstance(first, Tensor):
            return isinstance(second, Tensor)
        return type(first) is type(second)

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether two nodes do the same, apart from their arguments."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Node]) -> bool:
        """Whether nothing outside of the match uses what is computed on the way."""
        matched = set(map(id, nodes_map.values()))
        for pattern_node, node in nodes_map.items():
            if pattern_node.op == "placeholder" or pattern_node in self.pattern_returning_nodes:
                continue
            if any(id(user) not in matched for user in node.users):
                return False
        return True

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        """The matches that share no node with one before."""
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            own = {
                node
                for pattern_node, node in match.nodes_map.items()
                if pattern_node.op not in ("placeholder", "output")
            }
            if own.isdisjoint(taken):
                kept.append(match)
                taken |= own
        return kept

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        """Whether two arguments match of which at least one is no node."""
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            if pn in match.nodes_map:
                return match.nodes_map[pn] == gn
            match.nodes_map[pn] = gn
            return True
        return not isinstance(gn, Node) and type(gn) is type(pn) and gn == pn

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Whether the pattern up to `pn` matches the graph up to `gn`; notes it in the match."""
        if isinstance(pn, Node) and not isinstance(gn, Node):
            return self._match_literals(pn, gn, match)
        if pn in match.nodes_map:
            return match.nodes_map[pn] == gn
        if any(node is gn for node in match.nodes_map.values()):  # one node cannot be two of the pattern
            return False
        if not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder" or self._match_arguments(pn, gn, match, node_name_match):
            return True
        match.nodes_map.pop(pn)
        return False

    def _match_arguments(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str) -> bool:
        if pn.kwargs.keys() == gn.kwargs.keys() and len(pn.args) == len(gn.args):
            pairs = [(pn.args, gn.args), *((pn.kwargs[key], gn.kwargs[key]) for key in pn.kwargs)]
        else:
            # The same arguments, given by position here and by name there.
            mine, others = _by_name(pn), _by_name(gn)
            if mine is None or others is None or mine.keys() != others.keys():
                return False
            pairs = [(mine[key], others[key]) for key in mine]
        return all(self._match_argument(first, second, match, node_name_match) for first, second in pairs)

    def _match_argument(self, first: Any, second: Any, match: InternalMatch, node_name_match: str) -> bool:
        if isinstance(first, Node) and isinstance(second, Node):
            return self._match_nodes(first, second, match, node_name_match)
        if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
            return len(first) == len(second) and all(
                self._match_argument(one, other, match, node_name_match) for one, other in zip(first, second)
            )
        if isinstance(first, dict) and isinstance(second, dict):
            return first.keys() == second.keys() and all(
                self._match_argument(first[key], second[key], match, node_name_match) for key in first
            )
        if isinstance(first, slice) and isinstance(second, slice):
            parts = ("start", "stop", "step")
            return all(
                self._match_argument(getattr(first, part), getattr(second, part), match, node_name_match)
                for part in parts
            )
        if self.ignore_literals and not isinstance(first, Node) and not isinstance(second, Node):
            return True
        return self._match_literals(first, second, match)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places where the pattern is, in the order of the graph."""
        # For each end of the pattern, the nodes that may be it.
        candidates = [
            [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)]
            for anchor in self.pattern_anchors
        ]
        found: list[InternalMatch] = []
        for ends in itertools.product(*candidates):
            if len(set(map(id, ends))) != len(ends):
                continue
            match = InternalMatch(anchors=self.pattern_anchors)
            matches = all(
                self._match_nodes(anchor, node, match, node_name_match)
                for anchor, node in zip(self.pattern_anchors, ends)
            )
            if matches and self._is_complete(match) and self._is_contained(match.nodes_map):
                found.append(self._finished(match))
        return self._remove_overlapping_matches(found) if self.remove_overlapping_matches else found

    def _is_complete(self, match: InternalMatch) -> bool:
        """Whether no input of the pattern is a node that the match computes."""
        inner = {
            id(node)
            for pattern_node, node in match.nodes_map.items()
            if pattern_node.op not in ("placeholder", "output")
        }
        return all(
            id(node) not in inner
            for pattern_node, node in match.nodes_map.items()
            if pattern_node.op == "placeholder"
        ) and all(node in match.nodes_map for node in self.pattern_returning_nodes)

    def _finished(self, match: InternalMatch) -> InternalMatch:
        match = copy.copy(match)
        match.placeholder_nodes = [match.nodes_map[node] for node in self.pattern_placeholder_nodes]
        match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
        return match


def _attribute(node: Node) -> Any:
    """The attribute that a get_attr node takes."""
    found: Any = node.graph.owning_module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def _by_name(node: Node) -> dict[str, Any] | None:
    """The arguments of an operator of `torch.ops` by the names of the parameters; None for other nodes."""
    if not isinstance(node.target, OpOverload):
        return None
    normalized = node.normalized_arguments(node.graph.owning_module, normalize_to_only_use_kwargs=True)
    return None if normalized is None else normalized.kwargs
