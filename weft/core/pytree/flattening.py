"""Trees taken apart into leaves, and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .key_paths import KeyPath
from .nodes import MAPPINGS, SUPPORTED_NODES, IsLeaf, PyTree, kind_of, tree_is_leaf
from .treespec import LEAF_SPEC, TreeSpec, checked_spec


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """Return the tree without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """Return the leaves of a tree, and its structure.

    >>> tree_flatten({"b": [1, 2], "a": (3,)})[0]
    [1, 2, 3]
    """
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list, is_leaf: IsLeaf) -> TreeSpec:
    kind = kind_of(tree)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """Return the tree of a structure with these leaves.

    Raises: ValueError if there are too few or too many.

    >>> tree_unflatten("xyz", tree_structure({"b": [1, 2], "a": (3,)}))
    {'b': ['x', 'y'], 'a': ('z',)}
    """
    return checked_spec(treespec).unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator:
    """Yield the leaves, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[kind_of(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list:
    """Return the leaves.

    >>> tree_leaves([1, (2, None)])
    [1, 2, None]
    """
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """Return the leaves of the arguments of a call."""
    return tree_leaves([*args, *kwargs.values()])


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Return the leaves, each with the way to it.

    Raises: ValueError for a container that was registered without `flatten_with_keys_fn`.

    >>> from weft.utils._pytree import keystr
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_with_paths((), tree, is_leaf))


def _with_paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    with_keys = SUPPORTED_NODES[kind_of(tree)].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Return the leaves, each with the way to it, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list | None:
    """The leaves of `tree`, each as often as the structure has leaves in its place; None if the two do not fit."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = kind_of(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    specs = treespec.children_specs
    if kind in MAPPINGS and treespec.type in MAPPINGS:  # of any kind, in any order
        by_key = dict(zip(treespec._keys(), specs))
        if by_key.keys() != tree.keys():
            return None
        specs = [by_key[key] for key in tree]
    elif kind is not treespec.type or context != treespec.context or len(children) != treespec.num_children:
        return None
    leaves: list = []
    for child, spec in zip(children, specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves
