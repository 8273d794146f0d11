"""Functions from dicts to dicts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

__all__ = [
    "assoc", "assoc_in", "dissoc", "get_in", "itemfilter", "itemmap", "keyfilter", "keymap", "merge",
    "merge_with", "update_in", "valfilter", "valmap",
]  # fmt: skip


def _get_factory(f: Callable, kwargs: dict[str, Any]) -> Callable[[], Any]:
    factory = kwargs.pop("factory", dict)
    if kwargs:
        raise TypeError(f"{f.__name__}() got an unexpected keyword argument '{kwargs.popitem()[0]}'")
    return factory


def _listed(dicts: tuple) -> Any:
    return dicts[0] if len(dicts) == 1 and not isinstance(dicts[0], Mapping) else dicts


def merge(*dicts: Any, **kwargs: Any) -> Any:
    """One dict of several; the last value of a key counts.

    >>> merge({1: "a"}, {1: "b", 2: "c"})
    {1: 'b', 2: 'c'}
    """
    result = _get_factory(merge, kwargs)()
    for each in _listed(dicts):
        result.update(each)
    return result


def merge_with(func: Callable, *dicts: Any, **kwargs: Any) -> Any:
    """One dict of several, with `func(values)` for each key.

    >>> merge_with(sum, {1: 1, 2: 2}, {1: 10})
    {1: 11, 2: 2}
    """
    result = _get_factory(merge_with, kwargs)()
    for each in _listed(dicts):
        for key, value in each.items():
            result.setdefault(key, []).append(value)
    return valmap(func, result, type(result))


def valmap(func: Callable, d: Any, factory: Callable = dict) -> Any:
    """The dict with `func(value)` for its values."""
    result = factory()
    result.update(zip(d.keys(), map(func, d.values())))
    return result


def keymap(func: Callable, d: Any, factory: Callable = dict) -> Any:
    """The dict with `func(key)` for its keys."""
    result = factory()
    result.update(zip(map(func, d.keys()), d.values()))
    return result


def itemmap(func: Callable, d: Any, factory: Callable = dict) -> Any:
    """The dict with `func((key, value))` for its items."""
    result = factory()
    result.update(map(func, d.items()))
    return result


def valfilter(predicate: Callable, d: Any, factory: Callable = dict) -> Any:
    """The items whose values satisfy `predicate`."""
    result = factory()
    result.update((key, value) for key, value in d.items() if predicate(value))
    return result


def keyfilter(predicate: Callable, d: Any, factory: Callable = dict) -> Any:
    """The items whose keys satisfy `predicate`."""
    result = factory()
    result.update((key, value) for key, value in d.items() if predicate(key))
    return result


def itemfilter(predicate: Callable, d: Any, factory: Callable = dict) -> Any:
    """The items that satisfy `predicate`."""
    result = factory()
    result.update(each for each in d.items() if predicate(each))
    return result


def assoc(d: Any, key: Any, value: Any, factory: Callable = dict) -> Any:
    """A copy with another item.

    >>> assoc({"x": 1}, "y", 3)
    {'x': 1, 'y': 3}
    """
    result = factory()
    result.update(d)
    result[key] = value
    return result


def dissoc(d: Any, *keys: Any, **kwargs: Any) -> Any:
    """A copy without these keys."""
    result = _get_factory(dissoc, kwargs)()
    result.update((key, value) for key, value in d.items() if key not in keys)
    return result


def assoc_in(d: Any, keys: Any, value: Any, factory: Callable = dict) -> Any:
    """A copy with another value in a dict inside.

    >>> assoc_in({"a": {"b": 1}}, ["a", "b"], 2)
    {'a': {'b': 2}}
    """
    return update_in(d, keys, lambda old: value, value, factory)


def update_in(d: Any, keys: Any, func: Callable, default: Any = None, factory: Callable = dict) -> Any:
    """A copy with `func(value)` in a dict inside; missing dicts are made."""
    first_key, *rest = keys
    if rest:
        inner = update_in(d[first_key] if first_key in d else factory(), rest, func, default, factory)
    else:
        inner = func(d[first_key]) if first_key in d else func(default)
    return assoc(d, first_key, inner, factory)


def get_in(keys: Any, coll: Any, default: Any = None, no_default: bool = False) -> Any:
    """The value in a dict or list inside; `default` if there is none, unless `no_default`.

    >>> get_in(["a", 0], {"a": [5]})
    5
    """
    try:
        return reduce(operator.getitem, keys, coll)
    except (KeyError, IndexError, TypeError):
        if no_default:
            raise
        return default


def getter(index: Any) -> Callable:
    """A function that takes the item, or a tuple of the items in a list."""
    if isinstance(index, list):
        return (lambda x: tuple(x[each] for each in index)) if index else (lambda x: ())
    return operator.itemgetter(index)


def groupby(key: Any, seq: Iterable) -> dict[Any, list]:
    """The elements in lists by `key(element)`.

    >>> groupby(len, ["a", "bc", "d"])
    {1: ['a', 'd'], 2: ['bc']}
    """
    function = key if callable(key) else getter(key)
    result: dict[Any, list] = {}
    for each in seq:
        result.setdefault(function(each), []).append(each)
    return result


def first(seq: Iterable) -> Any:
    """The first element."""
    return next(iter(seq))
