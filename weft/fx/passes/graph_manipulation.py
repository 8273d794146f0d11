"""Sizes of values in graphs, and other targets for nodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...core.tensor import Tensor
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, Target, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = [
    "get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes",
]  # fmt: skip


@compatibility(is_backward_compatible=False)
def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Give all nodes with this op and target another op and target."""
    new_graph = Graph()
    val_map: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args = map_arg(node.args, lambda each: val_map[each])
            kwargs = map_arg(node.kwargs, lambda each: val_map[each])
            val_map[node] = new_graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            val_map[node] = new_graph.node_copy(node, lambda each: val_map[each])
    fx_module.graph = new_graph


@compatibility(is_backward_compatible=False)
class size_bytes(NamedTuple):  # noqa: N801 (PyTorch's name)
    """The size of a node's result, and with its parameters, in bytes."""

    output_size: int
    total_size: int


@compatibility(is_backward_compatible=False)
def get_size_of_all_nodes(fx_module: GraphModule, args: list[Tensor] | None = None) -> None:
    """Note the sizes of all nodes as `node.size_bytes`; with `args`, after carrying out the graph."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]


@compatibility(is_backward_compatible=False)
def get_tensor_meta(node: Node) -> Any:
    """What `ShapeProp` has noted. Raises: RuntimeError if it has not."""
    meta = node.meta.get("tensor_meta")
    if not meta:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return meta


@compatibility(is_backward_compatible=False)
def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The size of a node's result, and together with the parameters of a module that it calls."""
    elements = 0
    if node.op == "call_module":
        module = dict(fx_module.named_modules())[str(node.target)]
        elements += sum(parameter.numel() for _, parameter in module.named_parameters())
    meta: TensorMetadata = get_tensor_meta(node)
    own = meta.shape.numel()
    per_element = meta.dtype.itemsize
    return size_bytes(per_element * own, per_element * (elements + own))
