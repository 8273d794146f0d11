"""Unification of objects by their attributes."""

from __future__ import annotations

from typing import Any, TypeVar

from .core import _reify, _unify, reify, unify

T = TypeVar("T", bound=type)

__all__ = ["reify_object", "unifiable", "unify_object"]


def unifiable(cls: T) -> T:
    """Decorator: let objects of the class be terms.

    >>> from weft.fx.experimental.unification import Var
    >>> @unifiable
    ... class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> unify(Point(1, Var("y")), Point(1, 2), {})
    {~y: 2}
    """
    _unify.add((cls, cls, dict), unify_object)
    _reify.add((cls, dict), reify_object)
    return cls


def reify_object(o: Any, s: dict) -> Any:
    """The object with the values of the variables in its attributes."""
    old = _attributes(o)
    new = {name: reify(value, s) for name, value in old.items()}
    if all(new[name] is old[name] for name in old):
        return o
    made = object.__new__(type(o))
    for name, value in new.items():
        setattr(made, name, value)
    return made


def unify_object(u: Any, v: Any, s: dict) -> Any:
    """`unify` of two objects by their attributes."""
    if type(u) is not type(v):
        return False
    return unify(_attributes(u), _attributes(v), s)


def _attributes(o: Any) -> dict[str, Any]:
    if hasattr(o, "__slots__"):
        return {name: getattr(o, name) for name in o.__slots__ if hasattr(o, name)}
    return o.__dict__


def _reify_object_dict(o: Any, s: dict) -> Any:
    return reify_object(o, s)


def _reify_object_slots(o: Any, s: dict) -> Any:
    return reify_object(o, s)
