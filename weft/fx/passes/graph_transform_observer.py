"""Watching what a pass does to a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..traceback import NodeSource, NodeSourceAction

T = TypeVar("T")

__all__ = ["GraphTransformObserver"]


@compatibility(is_backward_compatible=False)
class GraphTransformObserver:
    """Inside, nodes that are made or put in the place of others note where they come from in `meta["from_node"]`."""

    __pass_count = 0

    def __init__(
        self, gm: GraphModule, passname: str, subsystem: str | None = None, log_url: str | None = None
    ) -> None:
        self.gm = gm
        self.passname = passname
        self.subsystem = subsystem
        self.log_url = log_url
        self.erased_nodes: set[str] = set()
        self.created_nodes: set[str] = set()
        self.name_to_node: dict[str, Node] = {}
        self.copied_gms: list[GraphModule] = []
        GraphTransformObserver.__pass_count += 1
        self._node_creation_hook = self.get_node_creation_hook()
        self._node_erase_hook = self.get_node_erase_hook()
        self._node_replace_hook = self.get_node_replace_hook()
        self._deepcopy_hook = self.get_deepcopy_hook()

    @classmethod
    def get_current_pass_count(cls) -> int:
        """How many passes have been watched."""
        return cls.__pass_count

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], T]) -> T | None:
        """Carry out a pass over the module, and watch it."""
        with self:
            return None if self._check_disable_pass() else pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], T]) -> T | None:
        """Carry out a pass over the graph, and watch it."""
        with self:
            return None if self._check_disable_pass() else pass_fn(self.gm.graph)

    def _check_disable_pass(self) -> bool:
        return False

    def __enter__(self) -> GraphTransformObserver:
        self.gm._register_create_node_hook(self._node_creation_hook)
        self.gm._register_erase_node_hook(self._node_erase_hook)
        self.gm._register_replace_node_hook(self._node_replace_hook)
        self.gm._register_deepcopy_hook(self._deepcopy_hook)
        self.erased_nodes.clear()
        self.created_nodes.clear()
        self.name_to_node = {node.name: node for node in self.gm.graph.nodes}
        return self

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        for gm in (self.gm, *self.copied_gms):
            gm._unregister_create_node_hook(self._node_creation_hook)
            gm._unregister_erase_node_hook(self._node_erase_hook)
            gm._unregister_replace_node_hook(self._node_replace_hook)
            gm._unregister_deepcopy_hook(self._deepcopy_hook)

    def get_node_creation_hook(self) -> Callable[[Node], None]:
        """What is called with each new node."""

        def created(node: Node) -> None:
            self.created_nodes.add(node.name)
            self.name_to_node[node.name] = node
            source = NodeSource(None, self.passname, NodeSourceAction.CREATE)
            node.meta.setdefault("from_node", []).append(source)

        return created

    def get_node_erase_hook(self) -> Callable[[Node], None]:
        """What is called with each node that is erased."""

        def erased(node: Node) -> None:
            self.erased_nodes.add(node.name)
            self.name_to_node.pop(node.name, None)

        return erased

    def get_node_replace_hook(self) -> Callable[..., None]:
        """What is called when a node takes the place of another as an argument."""

        def replaced(old: Node, new: str, user: Node) -> None:
            node = self.name_to_node.get(new)
            if node is None:
                return
            if not isinstance(node, Node):
                raise AssertionError(f"Expected node, got {type(node)}")
            action = [NodeSourceAction.REPLACE]
            if new in self.created_nodes:
                action.append(NodeSourceAction.CREATE)
            sources = node.meta.setdefault("from_node", [])
            if not any(each.name == old.name and each.pass_name == self.passname for each in sources):
                sources.append(NodeSource(old, self.passname, action))

        return replaced

    def get_deepcopy_hook(self) -> Callable[[GraphModule], None]:
        """What is called with each copy of the module."""

        def copied(gm: GraphModule) -> None:
            self.copied_gms.append(gm)

        return copied
