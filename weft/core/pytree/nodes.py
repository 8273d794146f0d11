"""The kinds of containers: how each is taken apart and put together."""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..return_types import ReturnType
from .key_paths import SequenceKey

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = Callable[[Iterable, Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[PyTree], bool] | None


class NodeDef(NamedTuple):
    """How a container is taken apart and put together. The context is what its children do not say."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[PyTree], tuple[list, Context]] | None = None


class JsonNames(NamedTuple):
    """How a kind of container and its context are written in JSON."""

    type: str
    dump: ToDumpableContextFn
    load: FromDumpableContextFn


# All kinds of containers by their type; all classes of named tuples are under the function `namedtuple`.
SUPPORTED_NODES: dict[Any, NodeDef] = {}
JSON_NAMES: dict[Any, JsonNames] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list, Context]] | None = None,
) -> None:
    """Make a class a container. `flatten_fn` gives its children and a context, of which `unflatten_fn` makes an instance.

    Raises: ValueError if it is one already, or if only one direction of the context's JSON is given.

    >>> from weft.utils._pytree import tree_leaves
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.both = [first, second]
    >>> register_pytree_node(Pair, lambda pair: (pair.both, None), lambda both, _: Pair(*both))
    >>> tree_leaves([Pair(1, [2]), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        JSON_NAMES[cls] = JsonNames(
            serialized_type_name, to_dumpable_context or json.dumps, from_dumpable_context or json.loads
        )


MAPPINGS = frozenset((dict, OrderedDict, defaultdict))


def is_namedtuple_class(cls: type) -> bool:
    """Return whether a class was made by `namedtuple` or as a NamedTuple."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields, tuple)
        and all(isinstance(field, str) for field in fields)
    )


def is_namedtuple_instance(obj: object) -> bool:
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object | type) -> bool:
    """Return whether this is a named tuple, or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether a class is a tuple with named fields as the built-in ones have: `os.stat_result`, `torch.return_types.max`."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields"))
    )


def is_structseq_instance(obj: object) -> bool:
    return is_structseq_class(type(obj))


def is_structseq(obj: object | type) -> bool:
    """Return whether this is a structseq, or a class of such."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def kind_of(tree: PyTree) -> Any:
    """Return the key of a tree's root in `SUPPORTED_NODES`; its type if it is a leaf."""
    kind = type(tree)
    if kind not in SUPPORTED_NODES:
        if issubclass(kind, ReturnType):
            _register_return_type(kind)
        elif is_namedtuple_class(kind):
            return namedtuple
    return kind


def _register_return_type(kind: type) -> None:
    register_pytree_node(
        kind,
        lambda node: (list(node), None),
        lambda values, _: kind(values),
        serialized_type_name=f"{kind.__module__}.{kind.__name__}",
        flatten_with_keys_fn=lambda node: ([(SequenceKey(i), child) for i, child in enumerate(node)], None),
    )


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether this is no container, or one that `is_leaf` takes for a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or kind_of(tree) not in SUPPORTED_NODES
