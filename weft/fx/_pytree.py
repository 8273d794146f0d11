"""Containers flattened by a given TreeSpec: what generated code does with arguments that are containers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..core.pytree import PyTree, TreeSpec

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFuncSpec = Callable[[PyTree, TreeSpec], list]
FlattenFuncExactMatchSpec = Callable[[PyTree, TreeSpec], bool]

SUPPORTED_NODES: dict[type[Any], FlattenFuncSpec] = {}
SUPPORTED_NODES_EXACT_MATCH: dict[type[Any], FlattenFuncExactMatchSpec | None] = {}


def register_pytree_flatten_spec(
    cls: type[Any],
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: FlattenFuncExactMatchSpec | None = None,
) -> None:
    """Say how `tree_flatten_spec` gets the children of a container of class `cls`."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type[Any]) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: PyTree, spec: TreeSpec) -> list[Any]:
    """The leaves of `pytree`, which is taken apart as far as `spec` says.

    Raises: RuntimeError if a container is of a class that no function was registered for.
    """
    if spec.is_leaf():
        return [pytree]
    kind: Any = spec.type
    if kind not in SUPPORTED_NODES:
        raise RuntimeError(
            f"{kind} does not have a flatten_fn_spec associated with it. Please register one with "
            "torch.fx._pytree.register_pytree_flatten_spec.  If you have serialized your model, make sure that any custom "
            "pytrees have been registered before loading it."
        )
    leaves: list[Any] = []
    for child, child_spec in zip(SUPPORTED_NODES[kind](pytree, spec), spec.children_specs, strict=True):
        leaves.extend(tree_flatten_spec(child, child_spec))
    return leaves


def _of_dict(values: dict[Any, Any], spec: TreeSpec) -> list[Any]:
    return [values[key] for key in spec.context]


def _of_sequence(values: Any, spec: TreeSpec) -> list[Any]:
    return [values[place] for place in range(spec.num_children)]


def _same_size(values: Any, spec: TreeSpec) -> bool:
    return len(values) == spec.num_children


register_pytree_flatten_spec(dict, _of_dict, _same_size)
register_pytree_flatten_spec(list, _of_sequence, _same_size)
register_pytree_flatten_spec(tuple, _of_sequence, _same_size)
register_pytree_flatten_spec(namedtuple, _of_sequence, _same_size)  # type: ignore[arg-type]  # the type in a TreeSpec
