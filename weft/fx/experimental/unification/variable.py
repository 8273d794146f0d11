"""Variables of equations between terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .utils import hashable

_global_logic_variables: set[Any] = set()
_glv = _global_logic_variables


class Var:
    """A variable. Two variables are equal if their tokens are; without a token each is its own.

    >>> Var("x"), Var("x") == Var("x"), Var() == Var()
    (~x, True, False)
    """

    _id = 1
    token: Any

    def __new__(cls, *token: Any) -> Var:
        if len(token) == 0:
            token = (f"_{Var._id}",)
            Var._id += 1
        made = object.__new__(cls)
        made.token = token[0]
        return made

    def __str__(self) -> str:
        return f"~{self.token}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.token == other.token  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.token))


def var() -> type[Var]:
    """The class of variables: `var()()` makes one."""
    return Var


def vars() -> Any:
    """A function that makes a list of so many variables: `vars()(2)`."""
    return lambda n: [Var() for _ in range(n)]


def isvar(n: Any) -> bool:
    """Whether `n` is a variable, or one for the time of a `variables`."""
    if isinstance(n, Var):
        return True
    return bool(_glv) and hashable(n) and n in _glv


@contextmanager
def variables(*variables: Any) -> Iterator[None]:
    """Inside, these values are variables.

    >>> from weft.fx.experimental.unification import unify
    >>> with variables(1):
    ...     unify((0, 1), (0, 2), {})
    {1: 2}
    """
    previous = _glv.copy()
    _glv.update(variables)
    try:
        yield
    finally:
        _glv.clear()
        _glv.update(previous)
