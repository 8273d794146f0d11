"""Classes of users as nodes: dataclasses, constants, and the older ways to register one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .key_paths import GetAttrKey
from .nodes import (
    JSON_NAMES,
    SUPPORTED_NODES,
    Context,
    DumpableContext,
    FlattenFn,
    FromDumpableContextFn,
    PyTree,
    ToDumpableContextFn,
    UnflattenFn,
    register_pytree_node,
)


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make a class a container of its fields; `drop_field_names` get their defaults when it is put together.

    Raises: ValueError if the fields named are not those of the dataclass.

    >>> from weft.utils._pytree import tree_leaves
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> register_dataclass(Point)
    >>> tree_leaves([Point(1, 2), 3])
    [1, 2, 3]
    """
    names = _field_names(cls, field_names, drop_field_names or [])

    def flatten(node: Any) -> tuple[list, Context]:
        pairs, context = flatten_with_keys(node)
        return [value for _, value in pairs], context

    def flatten_with_keys(node: Any) -> tuple[list, Context]:
        # A field that is None is no child, so that structures with and without it differ.
        there = [name for name in names if getattr(node, name) is not None]
        absent = [name for name in names if getattr(node, name) is None]
        return [(GetAttrKey(name), getattr(node, name)) for name in there], [there, absent]

    def unflatten(values: Any, context: Context) -> Any:
        there, absent = context
        return cls(**dict(zip(there, values)), **dict.fromkeys(absent))

    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _field_names(cls: type, named: list[str] | None, dropped: list[str]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        if named is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        return named
    fields = [field.name for field in dataclasses.fields(cls) if field.init]
    if named is None:
        return [name for name in fields if name not in dropped]
    missing = set(fields) - set(named) - set(dropped)
    unknown = (set(named) | set(dropped)) - set(fields)
    if missing or unknown:
        problem = (
            f"fields that are neither in field_names nor in drop_field_names: {missing}" if missing else ""
        )
        problem += f"names that are no fields: {unknown}" if unknown else ""
        raise ValueError(f"{cls}: {problem}")
    return named


class ConstantNode:
    """The context of a constant: its value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantNode) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"ConstantNode(value={self.value!r})"


_CONSTANTS: set[type] = set()


def register_constant(cls: type[Any]) -> None:
    """Make the instances of a class part of the structure instead of leaves.

    Raises: TypeError if the class has no comparison and hash of its own, because structures are compared.
    """
    if cls.__eq__ is object.__eq__:
        raise TypeError("register_constant(cls) expects `cls` to have a non-default `__eq__` implementation.")
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )
    register_pytree_node(
        cls,
        lambda value: ([], ConstantNode(value)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda value: ([], ConstantNode(value)),
    )
    _CONSTANTS.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Return whether `register_constant` was called with the class."""
    return isinstance(cls, type) and cls in _CONSTANTS


def _register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    to_str_fn: Callable | None = None,
    maybe_from_str_fn: Callable | None = None,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list, Context]] | None = None,
) -> None:
    """`register_pytree_node` under its earlier name; the two functions of strings mean nothing any more."""
    register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _private_register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], DumpableContext] | None = None,
    from_dumpable_context: Callable[[DumpableContext], Context] | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list, Context]] | None = None,
) -> None:
    """`register_pytree_node`, but nothing happens if the class is registered."""
    if cls not in SUPPORTED_NODES:
        register_pytree_node(
            cls,
            flatten_fn,
            unflatten_fn,
            serialized_type_name=serialized_type_name,
            to_dumpable_context=to_dumpable_context,
            from_dumpable_context=from_dumpable_context,
            flatten_with_keys_fn=flatten_with_keys_fn,
        )


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Make the instances of a class leaves again."""
    SUPPORTED_NODES.pop(cls, None)
    JSON_NAMES.pop(cls, None)
    _CONSTANTS.discard(cls)
