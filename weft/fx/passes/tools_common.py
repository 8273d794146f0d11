"""What several passes ask of graphs."""

from __future__ import annotations

import heapq
import operator
from collections.abc import Mapping
from typing import Any

from ...core.tensor import Tensor
from ...nn import Module
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

__all__ = [
    "FxNetAccFusionsFinder", "get_acc_ops_name", "get_node_target", "is_node_output_tensor", "legalize_graph",
    "stable_topological_sort",
]  # fmt: skip

Tensors = tuple[Tensor] | list[Tensor]
TensorOrTensors = Tensor | Tensors
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


@compatibility(is_backward_compatible=False)
def get_acc_ops_name(k: Any) -> str:
    """The name of a function with the module that defines it."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = k.__module__.replace("torch._ops", "torch.ops")
    return f"{module if module else ''}.{k.__name__}"


@compatibility(is_backward_compatible=False)
def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The name of what a call calls: the class of a module, the path of a function, the name of a method.

    >>> import weft as torch
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    >>> get_node_target(dict(traced.named_modules()), list(traced.graph.nodes)[1])
    'torch.nn.modules.activation.ReLU'
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_module":
        module = submodules[target]
        return _get_qualified_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_function":
        return f"_operator.{target.__name__}" if target is operator.getitem else _get_qualified_name(target)
    return target


@compatibility(is_backward_compatible=False)
def is_node_output_tensor(node: Node) -> bool:
    """Whether a node gives a tensor, as far as a pass has noted its type."""
    kind = node.meta.get("type")
    return isinstance(kind, type) and issubclass(kind, Tensor)


@compatibility(is_backward_compatible=False)
class FxNetAccFusionsFinder:
    """Finds groups of nodes between which values flow that are no tensors: they must stay together."""

    class FusionGroup:
        """A group that grows from its top toward the inputs."""

        def __init__(
            self,
            top_node_idx: int,
            nodes: set[Node],
            inputs: set[Node],
            nodes_need_process: set[Node],
        ) -> None:
            self.top_node_idx = top_node_idx
            self.nodes = nodes
            self.inputs = inputs
            self.nodes_need_process = nodes_need_process

        def add_node(self, node: Node) -> None:
            """Add a node, whose inputs are then inputs of the group."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(
                used
                for used in node.all_input_nodes
                if used.op in CALLABLE_NODE_OPS and used not in self.nodes
            )

    def __init__(self, module: GraphModule, acc_nodes: set[Node]) -> None:
        self.module = module
        self.nodes = list(module.graph.nodes)
        self.acc_nodes = acc_nodes

    def recursive_add_node(
        self,
        fusion_group: FxNetAccFusionsFinder.FusionGroup,
        inputs: set[Node] | list[Node],
        visited: set[Node] | None = None,
    ) -> bool:
        """Add the nodes on ways from the group to the inputs. Returns whether one of the inputs leads into the group."""
        for node in inputs:
            if visited is not None:
                if node in visited:
                    continue
                visited.add(node)
            if node in fusion_group.nodes:
                return True
            if self.nodes.index(node) < fusion_group.top_node_idx:
                continue
            if self.recursive_add_node(fusion_group, node.all_input_nodes, visited):
                fusion_group.add_node(node)
                return True
        return False

    def __call__(self) -> dict[Node, set[Node]]:
        """The group of each node that is in one."""
        result: dict[Node, set[Node]] = {}
        for node in list(self.acc_nodes):
            if node in result or node.op not in CALLABLE_NODE_OPS:
                continue
            if "tensor_meta" in node.meta or node not in self.acc_nodes:
                continue
            group = self.FusionGroup(self.nodes.index(node), {node}, set(node.all_input_nodes), {node})
            while group.nodes_need_process:
                each = group.nodes_need_process.pop()
                self.recursive_add_node(group, group.inputs, visited=set())
                if "tensor_meta" not in each.meta:
                    for user in each.users:
                        if user.op in CALLABLE_NODE_OPS and user not in group.nodes:
                            group.add_node(user)
                            self.recursive_add_node(group, group.inputs, visited=set())
                for used in each.all_input_nodes:
                    if used.op not in CALLABLE_NODE_OPS or "tensor_meta" in used.meta or used in group.nodes:
                        continue
                    group.add_node(used)
                    group.top_node_idx = min(group.top_node_idx, self.nodes.index(used))
                    self.recursive_add_node(group, group.inputs, visited=set())
            if not group.nodes <= self.acc_nodes:
                self.acc_nodes -= group.nodes
            else:
                result.update({each: group.nodes for each in group.nodes})
        return result


@compatibility(is_backward_compatible=False)
def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a graph into an order in which each comes after its inputs; the graph of `gm` is replaced.

    Raises: RuntimeError if the nodes go round in a circle.
    """
    nodes = list(gm.graph.nodes)
    missing = {node: len(node.all_input_nodes) for node in nodes}
    ready = [node for node in nodes if not missing[node]]
    # Inputs come first, as PyTorch puts them; of the others, those that became ready first.
    ordered: list[Node] = []
    while ready:
        node = ready.pop(0)
        ordered.append(node)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return _reordered(gm, ordered)


@compatibility(is_backward_compatible=False)
def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """As `legalize_graph`, and nodes keep their order where it does not matter."""
    nodes = list(gm.graph.nodes)
    place = {node: number for number, node in enumerate(nodes)}
    missing = {node: len(node.all_input_nodes) for node in nodes}
    ready = [place[node] for node in nodes if not missing[node]]
    heapq.heapify(ready)
    ordered: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        ordered.append(node)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, place[user])
    return _reordered(gm, ordered)


def _reordered(gm: GraphModule, ordered: list[Node]) -> GraphModule:
    if len(ordered) < len(gm.graph.nodes):
        raise RuntimeError(
            f"Input graph has cycles, unable to add {[node for node in gm.graph.nodes if node not in set(ordered)]}"
        )
    new = Graph()
    copies: dict[Node, Node] = {}
    for node in ordered:
        copies[node] = new.node_copy(node, lambda each: copies[each])
    new._codegen = gm.graph._codegen
    gm.graph = new
    return gm
