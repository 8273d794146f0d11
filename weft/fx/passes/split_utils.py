"""Splitting a graph module by tags on its nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .tools_common import is_node_output_tensor
from .utils import HolderModule, lift_subgraph_as_module

__all__ = [
    "Component", "getattr_recursive", "move_non_tensor_nodes_on_boundary", "setattr_recursive",
    "split_by_tags",
]  # fmt: skip


@compatibility(is_backward_compatible=False)
def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute at the path `name`; None if it is missing."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


@compatibility(is_backward_compatible=False)
def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at the path `attr`."""
    prefix, _, last = attr.rpartition(".")
    setattr(getattr_recursive(obj, prefix) if prefix else obj, last, value)


@compatibility(is_backward_compatible=False)
@dataclass
class Component:
    """The part of a graph with one tag."""

    graph: Graph
    order: int  # its place among the components
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)  # the nodes of the old graph that flow in
    orig_outputs: list[Node] = field(default_factory=list)  # and out
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


@compatibility(is_backward_compatible=False)
def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,  # noqa: N803 (PyTorch's name)
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """A GraphModule with one submodule for each of the `tags`, in this order, which the nodes carry as `node.tag`.

    With `return_fqn_mapping` also returns the new path of each attribute by its old one.
    """

    def flatten(value: Any) -> list[Node]:
        found: list[Node] = []
        map_arg(value, lambda node: found.append(node) or node)  # type: ignore[func-returns-value]
        return found

    node_remapping: dict[Node, Node] = {}
    component_of: dict[Node, Component] = {}
    components = {tag: Component(Graph(), place, tag) for place, tag in enumerate(tags)}
    main_graph = Graph()
    remapped_in_main: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            remapped_in_main[node] = main_graph.placeholder(str(node.name), type_expr=node.type)
            remapped_in_main[node].meta = copy.copy(node.meta)
        elif node.op not in ("output", "get_attr"):
            if not hasattr(node, "tag"):
                raise AssertionError(f"Node {node} does not have tag attribute")
            _copy_into(components[node.tag], node, node_remapping, component_of)
    output = gm.graph.output_node()
    for result in flatten(output.args[0]):
        if result.op == "get_attr":
            remapped_in_main[result] = main_graph.get_attr(str(result.target), result.type)
        elif result.op != "placeholder" and result not in component_of[result].orig_outputs:
            component_of[result].orig_outputs.append(result)

    holder = HolderModule({})
    mapping: dict[str, str] = {}
    for component in components.values():
        results = tuple(node_remapping[node] for node in component.orig_outputs)
        component.graph.output(results if return_tuple or len(results) != 1 else results[0])
        component.gm, own_mapping = lift_subgraph_as_module(gm, component.graph, component.name)
        mapping.update(own_mapping)
        call = main_graph.call_module(
            component.name, tuple(remapped_in_main[node] for node in component.orig_inputs)
        )
        if len(results) == 1 and not return_tuple:
            remapped_in_main[component.orig_outputs[0]] = call
        else:
            from ..proxy import Proxy

            for place, node in enumerate(component.orig_outputs):
                remapped_in_main[node] = Proxy(call)[place].node  # type: ignore[index]
        setattr(holder, component.name, component.gm)
    main_graph.output(map_arg(output.args[0], lambda node: remapped_in_main[node]))
    for node in gm.graph.nodes:
        if node.op == "get_attr" and node in remapped_in_main:
            setattr_recursive(holder, str(node.target), getattr_recursive(gm, str(node.target)))
    made = GraphModuleCls(holder, main_graph)
    return (made, mapping) if return_fqn_mapping else made


def _copy_into(
    component: Component, node: Node, remapping: dict[Node, Node], component_of: dict[Node, Component]
) -> None:
    """Copy a node into its component; what comes from elsewhere becomes an input of it."""
    earlier = [component_of[used] for used in node.all_input_nodes if used in component_of]
    if any(each.order > component.order for each in earlier):
        raise AssertionError(f"Component {component.name} uses what a later component computes")

    def remap(used: Node) -> Node:
        if used.op == "get_attr":
            if used not in component.getattr_maps:
                component.getattr_maps[used] = component.graph.get_attr(str(used.target), used.type)
            return component.getattr_maps[used]
        if used.op != "placeholder" and component_of[used] is component:
            return remapping[used]
        if used not in component.orig_inputs:
            component.orig_inputs.append(used)
            new = component.graph.placeholder(used.name, type_expr=used.type)
            new.meta = copy.copy(used.meta)
            component.input_placeholders.append(new)
            if used.op != "placeholder" and used not in component_of[used].orig_outputs:
                component_of[used].orig_outputs.append(used)
        return component.input_placeholders[component.orig_inputs.index(used)]

    remapping[node] = component.graph.node_copy(node, remap)
    component_of[node] = component


@compatibility(is_backward_compatible=False)
def move_non_tensor_nodes_on_boundary(subgraphs: Any) -> None:
    """Move calls that give no tensors, at the end of a subgraph, into the subgraphs that use them."""
    place_of = {node: place for place, subgraph in enumerate(subgraphs) for node in subgraph.nodes}

    def movable(node: Node, place: int) -> bool:
        users = [user for user in node.users if user.op != "output"]
        return (
            bool(users)
            and not is_node_output_tensor(node)
            and all(place_of.get(user) != place for user in users)
        )

    for place, subgraph in enumerate(subgraphs):
        for node in reversed(list(subgraph.nodes)):
            if not movable(node, place):
                continue
            targets = {place_of[user] for user in node.users if user in place_of}
            if len(targets) == 1:
                target = targets.pop()
                subgraph.nodes.remove(node)
                subgraphs[target].nodes.insert(0, node)
                place_of[node] = target
