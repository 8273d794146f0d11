"""Graphs as JSON. Functions are written by name, and reading resolves names through weft's tables only.

So nothing of a file is executed that is not a function or a method of tensors, an operator of Python's, or an operator that
the program that reads the file has registered itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import weft

from ..core.registry import FUNCTIONS
from ..core.size import Size
from ..core.tensor import Tensor
from ..fx.graph import Graph
from ..fx.node import Node
from ..library.namespaces import OpOverload
from ..library.qualified_name import public_name
from ..overrides import get_overridable_functions
from ._guards import Check

# Functions that a file may not name, because they open files or change the state of the library.
_REFUSED = ("from_file", "save", "load", "set_", "manual_seed", "use_", "seed", "compile")
_OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul neg pos abs invert and_ or_ xor lshift rshift eq ne lt le gt ge getitem setitem "
    "iadd isub imul itruediv"
).split()
_MATH = "sqrt log log2 log10 exp pow floor ceil trunc".split()


class UnsafeGraphError(RuntimeError):
    """A file names something that is not a function of torch's, so that it is not read."""


# ---- Functions --------------------------------------------------------------------------------------------------------------


def function_name(function: Callable) -> str:
    """The name of a function in a file.

    Raises: NotImplementedError for a function that is neither weft's nor Python's.
    """
    if isinstance(function, OpOverload):
        return f"ops.{function}"
    name = public_name(function)
    if name is not None:
        return f"torch.{name}"
    if function is round:
        return "builtins.round"
    for module, names in ((operator, _OPERATORS), (math, _MATH)):
        short = getattr(function, "__name__", "")
        if short in names and getattr(module, short) is function:
            return f"{module.__name__.lstrip('_')}.{short}"
    raise NotImplementedError(
        f"torch.export.save: {function} cannot be named in a file. Functions of torch can, and operators that are registered "
        "with torch.library.custom_op"
    )


def function_named(name: str) -> Callable:
    """The function of a name in a file.

    Raises: UnsafeGraphError if it is none of weft's or of the operators of Python's.
    """
    space, _, rest = name.partition(".")
    if space == "torch" and rest in FUNCTIONS and not rest.rpartition(".")[2].startswith(_REFUSED):
        return FUNCTIONS[rest]
    if space == "operator" and rest in _OPERATORS:
        return getattr(operator, rest)
    if space == "math" and rest in _MATH:
        return getattr(math, rest)
    if name == "builtins.round":
        return round
    if space == "ops" and rest.count(".") == 2:
        namespace, packet, overload = rest.split(".")
        if not namespace.startswith("_") and not overload.startswith("_") and not packet.startswith(_REFUSED):
            try:
                return getattr(getattr(getattr(weft.ops, namespace), packet), overload)
            except AttributeError:
                raise NotImplementedError(f"torch.export.load: weft has no operator {rest}") from None
    raise UnsafeGraphError(f"torch.export.load: the file calls {name!r}, which is no function of torch")


def _is_method(name: Any) -> bool:
    """Whether a file may call this method of tensors."""
    is_dunder = isinstance(name, str) and name.startswith("__")
    known = {each.__name__ for each in get_overridable_functions()[Tensor]}
    return (
        isinstance(name, str) and name in known and (not is_dunder or name.strip("_") in _OPERATORS)
    ) or name in ("size", "numel", "item", "copy_")


# ---- Values -----------------------------------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:
    """A value as JSON. Numbers, text, None and lists are themselves; everything else is a dict with one key, its kind."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case complex():
            return {"complex": [value.real, value.imag]}
        case Node():
            return {"node": value.name}
        case Size():
            return {"size": [encoded(each) for each in value]}
        case tuple():
            return {"tuple": [encoded(each) for each in value]}
        case list():
            return [encoded(each) for each in value]
        case dict():
            return {"dict": [[encoded(key), encoded(each)] for key, each in value.items()]}
        case slice():
            return {"slice": [encoded(each) for each in (value.start, value.stop, value.step)]}
        case weft.dtype() | weft.layout() | weft.memory_format():
            return {"torch": str(value).removeprefix("torch.")}
        case weft.device():
            return {"device": str(value)}
        case Tensor():
            return {"tensor": [list(value.shape), str(value.dtype).removeprefix("torch.")]}
        case Check():
            return {"check": [encoded(each) for each in (value.source, value.sizes, value.value)]}
    if value is ...:
        return {"ellipsis": None}
    raise NotImplementedError(f"torch.export.save: a graph with a constant of {type(value)} cannot be saved")


def decoded(value: Any, nodes: dict[str, Node]) -> Any:
    """The value of a piece of JSON."""
    if isinstance(value, list):
        return [decoded(each, nodes) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()

    def items() -> list[Any]:
        return [decoded(each, nodes) for each in held]

    match kind:
        case "float":
            return float(held)
        case "complex":
            return complex(*held)
        case "node":
            return nodes[held]
        case "size":
            return tuple.__new__(Size, items())
        case "tuple":
            return tuple(items())
        case "dict":
            return {decoded(key, nodes): decoded(each, nodes) for key, each in held}
        case "slice":
            return slice(*items())
        case "torch":
            found = getattr(weft, held)
            if not isinstance(found, (weft.dtype, weft.layout, weft.memory_format)):
                raise UnsafeGraphError(f"torch.export.load: {held!r} is no dtype, layout or memory format")
            return found
        case "device":
            return weft.device(held)
        case "tensor":
            return weft.empty(held[0], dtype=decoded({"torch": held[1]}, nodes), device="meta")
        case "check":
            return Check(*items())
        case "ellipsis":
            return ...
    raise UnsafeGraphError(f"torch.export.load: the file has a value of the unknown kind {kind!r}")


# ---- Graphs -----------------------------------------------------------------------------------------------------------------


def encoded_graph(graph: Graph) -> list[dict[str, Any]]:
    """The nodes of a graph, in order."""
    return [_encoded_node(node) for node in graph.nodes]


def _encoded_node(node: Node) -> dict[str, Any]:
    target = node.target if isinstance(node.target, str) else function_name(node.target)
    meta: dict[str, Any] = {
        key: encoded(node.meta[key]) for key in ("val", "dynamic", "check") if key in node.meta
    }
    if "writes" in node.meta:
        meta["writes"] = encoded(tuple(list(each) for each in node.meta["writes"]))
    stack = node.meta.get("nn_module_stack")
    if stack:
        meta["nn_module_stack"] = [[key, path, _class_name(kind)] for key, (path, kind) in stack.items()]
    found: dict[str, Any] = {
        "op": node.op,
        "name": node.name,
        "target": target,
        "args": [encoded(each) for each in node.args],
    }
    if node.kwargs:
        found["kwargs"] = {key: encoded(each) for key, each in node.kwargs.items()}
    if meta:
        found["meta"] = meta
    return found


def _class_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def decoded_graph(listed: list[dict[str, Any]]) -> Graph:
    """The graph of these nodes."""
    graph = Graph()
    nodes: dict[str, Node] = {}
    for each in listed:
        args = tuple(decoded(value, nodes) for value in each["args"])
        kwargs = {key: decoded(value, nodes) for key, value in each.get("kwargs", {}).items()}
        target = each["target"]
        match each["op"]:
            case "call_function":
                target = function_named(target)
            case "call_method":
                if not _is_method(target) or not args or not isinstance(args[0], Node):
                    raise UnsafeGraphError(
                        f"torch.export.load: the file calls {target!r}, which is no method of tensors"
                    )
            case "placeholder" | "output":
                pass
            case op:
                raise UnsafeGraphError(f"torch.export.load: the file has a node of the unknown kind {op!r}")
        node = nodes[each["name"]] = graph.create_node(each["op"], target, args, kwargs, each["name"])
        meta = each.get("meta", {})
        node.meta.update(
            {key: decoded(meta[key], nodes) for key in ("val", "dynamic", "check", "writes") if key in meta}
        )
        if "nn_module_stack" in meta:
            node.meta["nn_module_stack"] = {key: (path, kind) for key, path, kind in meta["nn_module_stack"]}
    return graph
