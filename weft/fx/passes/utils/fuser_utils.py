"""Putting nodes of a graph into a submodule."""

from __future__ import annotations

import copy
from collections import deque

from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import Proxy
from ..tools_common import legalize_graph
from .common import lift_subgraph_as_module

NodeList = list[Node]


@compatibility(is_backward_compatible=False)
def topo_sort(nodes: NodeList) -> NodeList:
    """The nodes in an order in which each comes after those that it uses."""
    chosen = set(nodes)
    missing = {node: sum(used in chosen for used in node.all_input_nodes) for node in nodes}
    ready = deque(node for node in nodes if not missing[node])
    found: NodeList = []
    while ready:
        node = ready.popleft()
        found.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


@compatibility(is_backward_compatible=False)
def validate_partition(partition: NodeList) -> bool:
    """Whether the nodes may become one call: no way leads out of them and back into them."""
    chosen = set(partition)
    waiting = deque(user for node in partition for user in node.users if user not in chosen)
    seen: set[Node] = set()
    while waiting:
        node = waiting.popleft()
        if node in chosen:
            return False
        if node not in seen:
            seen.add(node)
            waiting.extend(node.users)
    return True


@compatibility(is_backward_compatible=False)
def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: dict[Node, int | None] | None = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """A GraphModule of copies of the nodes, the nodes that flow into it, and those whose values others use."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
        if node not in gm.graph._find_nodes_lookup_table:
            raise AssertionError(f"{node} is not found in graph module {gm._get_name()}")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    table = dict.fromkeys(nodes) if partition_lookup_table is None else partition_lookup_table
    subgraph = Graph()
    inputs: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def remap(used: Node) -> Node:
        if used in table:
            return copies[used]
        if used not in inputs:
            new = subgraph.placeholder(used.name, type_expr=used.type)
            new.meta = copy.copy(used.meta)
            inputs[used] = new
        return inputs[used]

    for node in nodes:
        copies[node] = subgraph.node_copy(node, remap)
    outputs = {node: copies[node] for node in nodes if any(user not in table for user in node.users)}
    results = tuple(outputs.values())
    if always_return_tuple:
        subgraph.output(results)
    else:
        subgraph.output(results[0] if len(results) == 1 else results)
    subgraph.lint()
    fused, _ = lift_subgraph_as_module(gm, subgraph, comp_name="", class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


@compatibility(is_backward_compatible=False)
def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Call `sub_gm` in the graph of `gm`, and let its results be used instead of `orig_outputs`."""
    name = sub_gm.__class__.__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is not None:
        with gm.graph.inserting_after(insertion_point):
            call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
    else:
        call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
    result = sub_gm.graph.output_node().args[0]
    if len(orig_outputs) == 1 and not isinstance(result, tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
        return gm
    with gm.graph.inserting_after(call):
        proxy = Proxy(call)
        for place, old in enumerate(orig_outputs):
            new = proxy[place].node  # type: ignore[index]
            old.replace_all_uses_with(new, propagate_meta=True)
    call.meta["val"] = tuple(each.meta.get("val") for each in orig_outputs)
    return gm


@compatibility(is_backward_compatible=False)
def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erase the nodes, the last one first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


@compatibility(is_backward_compatible=False)
def fuse_by_partitions(
    gm: GraphModule,
    partitions: list[dict[Node, int | None]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Put each of the partitions into a submodule `fused_N`."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        sub_gm, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, sub_gm, inputs, outputs, _last(nodes))
        erase_nodes(gm, nodes)
    return legalize_graph(gm)


def _last(nodes: NodeList) -> Node:
    """The last of the nodes in the order of the graph."""
    return max(nodes, key=lambda node: node._sort_key)
