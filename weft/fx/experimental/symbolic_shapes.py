"""Questions about symbolic sizes. All of weft's sizes are ints, so the answers are those for ints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node

__all__ = [
    "CURRENT_NODE_KEY", "SHAPEENV_EVENT_KEY", "create_contiguous", "free_symbols", "guard_float", "guard_int",
    "guard_or_false", "guard_or_true", "guard_scalar", "guard_size_oblivious", "guarding_hint_or_throw",
    "has_free_symbols", "has_free_unbacked_symbols", "has_static_value", "has_symbolic_sizes_strides",
    "is_accessor_node", "is_concrete_bool", "is_concrete_float", "is_concrete_int", "is_nested_int",
    "is_symbol_binding_fx_node", "optimization_hint", "rebind_unbacked", "resolve_unbacked_bindings",
    "statically_known_false", "statically_known_true", "sym_and", "sym_eq", "sym_or",
]  # fmt: skip

SHAPEENV_EVENT_KEY = "shapeenv_event"
CURRENT_NODE_KEY = "current_node"


class GuardOnDataDependentSymNode(RuntimeError):
    """A size that only data decide was needed while tracing. weft's sizes are ints, so this does not happen."""


class ConstraintViolationError(RuntimeError):
    """Sizes are not what a constraint says."""


# ---- Is it known? ------------------------------------------------------------------------------------------------------


def is_symbolic(val: Any) -> bool:
    """Whether a number is symbolic: none is."""
    return False


def is_nested_int(s: Any) -> bool:
    """Whether a number is the size of a ragged dim of a nested tensor: none is."""
    return False


def is_concrete_int(a: Any) -> bool:
    """Whether `a` is an int that is known, as all are."""
    return isinstance(a, int)


def is_concrete_float(a: Any) -> bool:
    """Whether `a` is a float that is known, as all are."""
    return isinstance(a, float)


def is_concrete_bool(a: Any) -> bool:
    """Whether `a` is a bool that is known, as all are."""
    return isinstance(a, bool)


def has_static_value(a: Any) -> bool:
    """Whether the value of a number is known, as of all."""
    return isinstance(a, (bool, float, int))


def has_guarding_hint(a: Any) -> bool:
    """Whether a number has an example value, as all have."""
    return True


def free_symbols(val: Any) -> set[Any]:
    """The symbols in a value: none."""
    return set()


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The symbols in a value that only data decide: none."""
    return set()


def has_free_symbols(val: Any) -> bool:
    """Whether there are symbols in a value: no."""
    return False


def has_free_unbacked_symbols(x: Any) -> bool:
    """Whether there are symbols in a value that only data decide: no."""
    return False


def has_symbolic_sizes_strides(elem: Any) -> bool:
    """Whether a tensor has symbolic sizes: no."""
    return False


# ---- Values ------------------------------------------------------------------------------------------------------------


def guard_int(a: Any) -> int:
    """The int."""
    if not isinstance(a, int):
        raise AssertionError(f"guard_int: expected an int, got {type(a)}")
    return a


def guard_float(a: Any) -> float:
    """The float."""
    if not isinstance(a, float):
        raise AssertionError(f"guard_float: expected a float, got {type(a)}")
    return a


def guard_bool(a: Any) -> bool:
    """The bool."""
    if not isinstance(a, bool):
        raise AssertionError(f"guard_bool: expected a bool, got {type(a)}")
    return a


def guard_scalar(a: Any) -> bool | int | float:
    """The number."""
    if not isinstance(a, (bool, int, float)):
        raise AssertionError(f"guard_scalar: expected a number, got {type(a)}")
    return a


def guard_or_false(a: Any) -> bool:
    """The bool; False would stand for one that is not known."""
    return guard_bool(a)


def guard_or_true(a: Any) -> bool:
    """The bool; True would stand for one that is not known."""
    return guard_bool(a)


def guard_size_oblivious(expr: Any) -> bool:
    """The bool."""
    return guard_bool(expr)


def statically_known_true(x: Any) -> bool:
    """Whether the bool is True."""
    return guard_bool(x)


def statically_known_false(x: Any) -> bool:
    """Whether the bool is False."""
    return not guard_bool(x)


def expect_true(a: Any, skip: int = 0) -> bool:
    """The bool, which should be True."""
    return bool(a)


def guarding_hint_or_throw(a: Any) -> Any:
    """An example value of a number: itself."""
    return a


def optimization_hint(a: Any, fallback: int | None = None) -> int:
    """An example value of a number: itself."""
    return a


def sym_and(x: Any, *others: Any) -> bool:
    """Whether all hold."""
    return bool(x) and all(map(bool, others))


def sym_or(x: Any, *others: Any) -> bool:
    """Whether one holds."""
    return bool(x) or any(map(bool, others))


def sym_eq(x: Any, y: Any) -> bool:
    """Whether two numbers, or all numbers in two tuples or lists, are equal.

    >>> sym_eq((1, 2), [1, 2]), sym_eq(1, 2)
    (True, False)
    """
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    if isinstance(x, int) and isinstance(y, int):
        return x == y
    raise AssertionError(f"unexpected sym_eq between {type(x)} {type(y)}")


def create_contiguous(shape: Sequence[int]) -> list[int]:
    """The strides of a contiguous tensor.

    >>> create_contiguous((2, 3, 4))
    [12, 4, 1]
    """
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(size * strides[-1])
    return list(reversed(strides))


# ---- Graphs ------------------------------------------------------------------------------------------------------------


def is_symbol_binding_fx_node(node: Node) -> Any:
    """The symbol that a node stands for: none."""
    return None


def find_symbol_binding_fx_nodes(graph: Graph) -> dict[Any, Node]:
    """The nodes that stand for symbols: none."""
    return {}


def is_accessor_node(node: Node) -> bool:
    """Whether a node asks a tensor for a size, a stride or its storage offset."""
    if node.op == "call_method" and isinstance(node.args[0], Node):
        return node.target in ("size", "stride", "storage_offset", "item")
    return False


def fx_placeholder_vals(gm: GraphModule) -> list[Any]:
    """What is noted of the inputs."""
    return [node.meta["val"] for node in gm.graph.nodes if node.op == "placeholder"]


def fx_placeholder_targets(gm: GraphModule) -> list[str]:
    """The names of the inputs."""
    return [str(node.target) for node in gm.graph.nodes if node.op == "placeholder"]


def rebind_unbacked(shape_env: Any, n: Node, result: Any) -> None:
    """Connects symbols that only data decide with a new result: there are none."""


def resolve_unbacked_bindings(shape_env: Any, bindings: Any) -> Any:
    """The bindings: there are no symbols to resolve."""
    return bindings
