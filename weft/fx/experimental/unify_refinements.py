"""The types of nodes that satisfy equations between them."""

from __future__ import annotations

from typing import Any

from ..graph import Graph
from ..tensor_type import TensorType
from .refinement_types import Equality
from .unification import Var, unify

__all__ = [
    "check_for_type_equality", "convert_eq", "substitute_all_types", "substitute_solution_one_type",
    "unify_eq",
]  # fmt: skip


def convert_eq(list_of_eq: list[Equality]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The left sides and the right sides."""
    return tuple(each.lhs for each in list_of_eq), tuple(each.rhs for each in list_of_eq)


def unify_eq(list_of_eq: list[Equality]) -> Any:
    """The values of the variables in the equations; False if there are none."""
    return unify(*convert_eq(list_of_eq), {})


def substitute_solution_one_type(mapping: dict[Any, Any], t: Any) -> Any:
    """The type with the values of its variables."""
    if isinstance(t, Var):
        return mapping.get(t, t)
    if isinstance(t, TensorType):
        return TensorType(tuple(mapping.get(dim, dim) for dim in t.__args__))
    if isinstance(t, list):
        return [substitute_solution_one_type(mapping, each) for each in t]
    if isinstance(t, tuple):
        return tuple(substitute_solution_one_type(mapping, each) for each in t)
    return t


def substitute_all_types(graph: Graph, mapping: dict[Any, Any]) -> None:
    """Put the values of the variables into the types of all nodes."""
    settled = False
    while not settled:
        settled = True
        for key, value in mapping.items():
            if isinstance(value, Var) and value in mapping and mapping[value] != value:
                mapping[key] = mapping[value]
                settled = False
    for node in graph.nodes:
        node.type = substitute_solution_one_type(mapping, node.type)


def check_for_type_equality(g1: Graph, g2: Graph) -> bool:
    """Whether the nodes of two graphs have the same types."""
    return all(first.type == second.type for first, second in zip(g1.nodes, g2.nodes))
