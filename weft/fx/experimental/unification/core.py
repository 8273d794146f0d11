"""Solving equations between terms: values, and containers of values, with variables in them.

>>> from weft.fx.experimental.unification import Var
>>> x = Var("x")
>>> unify((1, [x, 3]), (1, [2, 3]), {})
{~x: 2}
>>> reify({"a": x}, {x: 2})
{'a': 2}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .dispatch import dispatch
from .unification_tools import assoc
from .utils import transitive_get as walk
from .variable import isvar

__all__ = ["reify", "unify"]

seq = (tuple, list, Iterator)


@dispatch(Iterator, dict)
def _reify(t: Any, s: Any) -> Any:
    return map(lambda each: reify(each, s), t)


@dispatch(tuple, dict)  # type: ignore[no-redef]
def _reify(t: Any, s: Any) -> Any:  # noqa: F811
    return tuple(reify(iter(t), s))


@dispatch(list, dict)  # type: ignore[no-redef]
def _reify(t: Any, s: Any) -> Any:  # noqa: F811
    return list(reify(iter(t), s))


@dispatch(dict, dict)  # type: ignore[no-redef]
def _reify(d: Any, s: Any) -> Any:  # noqa: F811
    return {key: reify(value, s) for key, value in d.items()}


@dispatch(slice, dict)  # type: ignore[no-redef]
def _reify(o: Any, s: Any) -> Any:  # noqa: F811
    return slice(*reify((o.start, o.stop, o.step), s))


@dispatch(object, dict)  # type: ignore[no-redef]
def _reify(o: Any, s: Any) -> Any:  # noqa: F811
    return o


def reify(e: Any, s: dict[Any, Any]) -> Any:
    """The term with the values of its variables."""
    if isvar(e):
        return reify(s[e], s) if e in s else e
    return _reify(e, s)


@dispatch(seq, seq, dict)
def _unify(u: Any, v: Any, s: Any) -> Any:
    u, v = tuple(u), tuple(v)
    if len(u) != len(v):
        return False
    for first, second in zip(u, v):
        s = unify(first, second, s)
        if s is False:
            return False
    return s


@dispatch((set, frozenset), (set, frozenset), dict)  # type: ignore[no-redef]
def _unify(u: Any, v: Any, s: Any) -> Any:  # noqa: F811
    return s if u == v else False


@dispatch(dict, dict, dict)  # type: ignore[no-redef]
def _unify(u: Any, v: Any, s: Any) -> Any:  # noqa: F811
    if len(u) != len(v):
        return False
    for key, value in u.items():
        if key not in v:
            return False
        s = unify(value, v[key], s)
        if s is False:
            return False
    return s


@dispatch(slice, slice, dict)  # type: ignore[no-redef]
def _unify(u: Any, v: Any, s: Any) -> Any:  # noqa: F811
    return unify((u.start, u.stop, u.step), (v.start, v.stop, v.step), s)


@dispatch(object, object, dict)  # type: ignore[no-redef]
def _unify(u: Any, v: Any, s: Any) -> Any:  # noqa: F811
    return False


@dispatch(object, object, dict)
def unify(u: Any, v: Any, s: Any) -> Any:
    """The values of variables, besides those in `s`, that make two terms equal; False if there are none."""
    u, v = walk(u, s), walk(v, s)
    if u is v or u == v:
        return s
    if isvar(u):
        return assoc(s, u, v)
    if isvar(v):
        return assoc(s, v, u)
    return _unify(u, v, s)


@dispatch(object, object)  # type: ignore[no-redef]
def unify(u: Any, v: Any) -> Any:  # noqa: F811
    return unify(u, v, {})
