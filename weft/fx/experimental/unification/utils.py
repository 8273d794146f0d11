"""What unification needs besides."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

__all__ = ["freeze", "hashable", "raises", "reverse_dict", "transitive_get", "xfail"]


def hashable(x: Any) -> bool:
    """Whether `x` has a hash."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def transitive_get(key: Any, d: Mapping) -> Any:
    """`d[d[...d[key]]]`, as long as there is something.

    >>> transitive_get(1, {1: 2, 2: 3})
    3
    """
    while hashable(key) and key in d and d[key] is not key:
        key = d[key]
    return key


def raises(err: type[BaseException], lamda: Callable[[], Any]) -> bool:
    """Whether the call raises this error."""
    try:
        lamda()
    except err:
        return True
    return False


def _toposort(edges: Mapping[Any, Any]) -> list[Any]:
    """The nodes of `{node: those that come after it}` in such an order. Raises: ValueError if they go round in a circle."""
    sorter: TopologicalSorter = TopologicalSorter()
    for node, following in edges.items():
        sorter.add(node)
        for each in following:
            sorter.add(each, node)
    try:
        return list(sorter.static_order())
    except CycleError:
        raise ValueError("Input has cycles") from None


def reverse_dict(d: Mapping[Any, Any]) -> dict[Any, tuple]:
    """From `{a: (b, c)}` to `{b: (a,), c: (a,)}`."""
    result: dict[Any, tuple] = {}
    for key, values in d.items():
        for value in values:
            result[value] = (*result.get(value, ()), key)
    return result


def xfail(func: Callable[[], Any]) -> None:
    """Raise unless the call fails."""
    try:
        func()
    except Exception:
        return
    raise Exception("XFailed test passed")


def freeze(d: Any) -> Hashable:
    """A value that hashes, with tuples for lists and sets of items for dicts.

    >>> freeze({1: [2, 3]})
    frozenset({(1, (2, 3))})
    """
    if isinstance(d, dict):
        return frozenset((key, freeze(value)) for key, value in d.items())
    if isinstance(d, set):
        return frozenset(map(freeze, d))
    if isinstance(d, (tuple, list)):
        return tuple(map(freeze, d))
    return d
