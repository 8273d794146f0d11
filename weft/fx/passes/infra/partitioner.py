"""Finding the largest groups of nodes that a device can carry out in one go."""

from __future__ import annotations

import collections
import logging
from collections.abc import Iterable, Sequence
from typing import Any

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

logger = logging.getLogger(__name__)
logger.setLevel(logging.WARNING)


class Partition:
    """A group of nodes."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = {}
        if nodes is not None:
            orders = node_orders if node_orders is not None else [None] * len(list(nodes))
            self.nodes = dict(zip(nodes, orders))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        del self.nodes[node]

    def size(self) -> int:
        return len(self.nodes)


class _DependencyViewer:
    """The nodes that depend on each node."""

    def __init__(self, graph_module: GraphModule) -> None:
        self.downstreams: dict[Node, set[Node]] = collections.defaultdict(set)
        for node in reversed(graph_module.graph.nodes):
            for user in node.users:
                self.downstreams[node].add(user)
                self.downstreams[node].update(self.downstreams[user])

    def downstreams_of(self, node: Node) -> set[Node]:
        return self.downstreams[node]


class CapabilityBasedPartitioner:
    """Puts the nodes that `operator_support` supports into submodules, as large as the flow of values allows."""

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops if non_compute_ops is not None else []
        self.allowed_single_node_partition_ops = (
            allowed_single_node_partition_ops if allowed_single_node_partition_ops is not None else []
        )
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self.dependency_viewer = _DependencyViewer(graph_module)

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """The groups of supported nodes; groups of one node are left out unless they are allowed."""
        # From the last node to the first, each joins a group if no way leads from it around into the group.
        groups: list[dict[Node, None]] = []
        group_of: dict[Node, int] = {}
        order = {node: place for place, node in enumerate(self.graph_module.graph.nodes)}
        for node in reversed(self.graph_module.graph.nodes):
            if node.op in ("placeholder", "output", "get_attr") or not self._is_node_supported(node):
                continue
            groups.append({node: None})
            group_of[node] = len(groups) - 1
            candidates = dict.fromkeys(group_of[user] for user in node.users if user in group_of)
            if not self.skip_horizontal_fusion:
                candidates |= dict.fromkeys(place for place, group in enumerate(groups) if group)
            for other in candidates:
                self._merge(groups, group_of, group_of[node], other)
        found = []
        for number, group in enumerate(each for each in groups if each):
            nodes = sorted(group, key=order.__getitem__)
            found.append(Partition(number, nodes, [order[node] for node in nodes]))
        return [each for each in found if self._is_worth(each)]

    def _merge(self, groups: list[dict[Node, None]], group_of: dict[Node, int], own: int, other: int) -> None:
        if own == other or not groups[other]:
            return
        together = {**groups[own], **groups[other]}
        if self._has_way_around(together):
            return
        groups[own] = together
        groups[other] = {}
        for node in together:
            group_of[node] = own

    def _has_way_around(self, group: dict[Node, None]) -> bool:
        """Whether a value leaves the group and comes back."""
        outside = {user for node in group for user in node.users if user not in group}
        return any(not self.dependency_viewer.downstreams_of(user).isdisjoint(group) for user in outside)

    def _is_worth(self, partition: Partition) -> bool:
        if self.allows_single_node_partition:
            return True
        computing = [node for node in partition.nodes if self._name(node) not in self.non_compute_ops]
        if len(computing) > 1:
            return True
        return any(self._name(node) in self.allowed_single_node_partition_ops for node in computing)

    @staticmethod
    def _name(node: Node) -> str:
        target: Any = node.target
        return _get_qualified_name(target) if callable(target) else target

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Put the groups into submodules."""
        return fuse_by_partitions(self.graph_module, [each.nodes for each in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take nodes of `non_compute_ops` away from the beginning and the end of each group."""
        for partition in partitions:
            changed = True
            while changed:
                changed = False
                for node in list(partition.nodes):
                    if self._name(node) not in self.non_compute_ops:
                        continue
                    is_first = not any(used in partition.nodes for used in node.all_input_nodes)
                    is_last = not any(user in partition.nodes for user in node.users)
                    if is_first or is_last:
                        partition.remove_node(node)
                        changed = True

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the groups and put them into submodules."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
