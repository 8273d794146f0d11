"""Several products with the same left factor as one product."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import weft

from ...core.tensor import Tensor
from ...nn import Module
from .._symbolic_trace import symbolic_trace
from ..node import Node
from ..passes.tools_common import legalize_graph


def split_result_tensors(result: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """The parts of a product that belong to the factors `inputs`, which were stacked."""
    sizes = [each.shape[0] for each in inputs]
    return weft.split(result, sizes)


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether `a` depends on `b`; True if it is not known after so many steps."""
    if a == b:
        return True
    if len(a.all_input_nodes) == 0:
        return False
    if search_depth == 0:
        return True
    return any(may_depend_on(each, b, search_depth - 1) for each in a.all_input_nodes)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether none of the nodes depends on another."""
    return not any(may_depend_on(a, b) or may_depend_on(b, a) for a, b in itertools.combinations(nodes, 2))


def merge_matmul(in_mod: Module) -> Module:
    """A module in which products `a @ w, b @ w` with the same right factor are `cat([a, b]) @ w`."""
    gm = symbolic_trace(in_mod)
    by_right: dict[Any, list[Node]] = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is weft.matmul:
            right: Any = node.args[1]
            # Each get_attr is a node of its own: what counts is the attribute.
            key = right.target if isinstance(right, Node) and right.op == "get_attr" else right
            by_right.setdefault(key, []).append(node)
    for products in by_right.values():
        if len(products) < 2 or not are_nodes_independent(products):
            continue
        lefts = [product.args[0] for product in products]
        with gm.graph.inserting_before(products[0]):
            stacked = gm.graph.call_function(weft.cat, (lefts,), {})
            merged = gm.graph.call_function(weft.matmul, (stacked, products[0].args[1]), {})
            parts = gm.graph.call_function(split_result_tensors, (merged, lefts), {})
            results = [
                gm.graph.call_function(operator.getitem, (parts, place), {}) for place in range(len(lefts))
            ]
        for product, result in zip(products, results):
            product.replace_all_uses_with(result)
            gm.graph.erase_node(product)
        legalize_graph(gm)
    gm.recompile()
    gm.graph.lint()
    return gm
