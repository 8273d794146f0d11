"""Functions and predicates of all leaves of a tree."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from .flattening import tree_flatten, tree_flatten_with_path, tree_iter
from .nodes import IsLeaf, PyTree


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Return the tree of what a function makes of the leaves, together with what `rests` have in their places.

    Raises: ValueError if one of `rests` has another structure.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call a function on the leaves, for what it does to them. Returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests)):
        func(*arguments)
    return tree


def tree_map_with_path(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` with the way to the leaf as the first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = (spec.flatten_up_to(rest) for rest in rests)
    return spec.unflatten(func(path, leaf, *rest) for (path, leaf), *rest in zip(found, *others))


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable], Callable]:
    """A decorator: the function sees only leaves of these types, or that fulfil a predicate; others stay as they are."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def fits(leaf: Any) -> bool:
            return isinstance(leaf, type_or_types_or_pred)
    elif callable(type_or_types_or_pred):
        fits = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def wrapper(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(leaf: Any) -> Any:
            return func(leaf) if fits(leaf) else leaf

        return wrapped

    return wrapper


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map` for leaves of some types, or that fulfil a predicate.

    >>> tree_map_only(int, str, [1, 2.5, (3,)])
    ['1', 2.5, ('3',)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: IsLeaf = None
) -> PyTree:
    """`tree_map_` for leaves of some types, or that fulfil a predicate."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether all leaves fulfil a predicate."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Return whether any leaf fulfils a predicate."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Return whether all leaves of some types fulfil a predicate."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None
) -> bool:
    """Return whether any leaf of some types fulfils a predicate."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))
