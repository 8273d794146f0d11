"""Types of elements that are taken out of containers."""

from __future__ import annotations

import operator
from typing import Any, get_args, get_origin

from ..graph import Graph


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give each node that takes an element out of an annotated tuple, list or dict the type of the element."""
    for node in graph.nodes:
        if node.target is not operator.getitem:
            continue
        container, index = node.args
        kind = getattr(container, "type", None)
        if kind is None:
            continue
        node.type = _type_of_element(kind, index) or node.type


def _type_of_element(kind: Any, index: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple and arguments and isinstance(index, int):
        if len(arguments) == 2 and arguments[1] is ...:
            return arguments[0]
        return arguments[index] if -len(arguments) <= index < len(arguments) else None
    if origin is list and arguments:
        return arguments[0]
    if origin is dict and len(arguments) == 2:
        return arguments[1]
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        annotations = getattr(kind, "__annotations__", {})
        return annotations.get(kind._fields[index]) if isinstance(index, int) else None
    return None
