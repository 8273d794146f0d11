"""The names of kernels: the builtin functions that launch a kernel have the name of its operation, so that profilers show it.

Machine code is shared by all operations with the same expression. So the name belongs to the function that a plan calls, and it is decided while
the operation plans: a call pays nothing for it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from .symbols import per_plan

# Operations in the name of a kernel that computes several.
MOST_NAMED = 8

_planned: ContextVar[str] = ContextVar("planned operation", default="kernel")


def planned_name() -> str:
    """The name of the operation that plans; "kernel" where none does.

    >>> with planning("exp"):
    ...     planned_name()
    'exp'
    >>> planned_name()
    'kernel'
    """
    return _planned.get()


@contextlib.contextmanager
def planning(name: str | None) -> Iterator[None]:
    """Kernels that are prepared within the context get this name; None leaves the name of the operation around it."""
    if name is None:
        yield
        return
    token = _planned.set(name)
    try:
        yield
    finally:
        _planned.reset(token)


def named_per_plan(function: Callable) -> Callable:
    """As `per_plan`, for a function that prepares kernels: the calls for other sizes give them the name of the first."""

    @per_plan
    def prepare(name: str, *arguments: Any) -> Any:
        token = _planned.set(name)
        try:
            return function(*arguments)
        finally:
            _planned.reset(token)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return prepare(_planned.get(), *arguments)

    return call


def joined(names: Iterable[str]) -> str:
    """The name of one kernel for several operations.

    >>> joined(["mul", "add", "relu"])
    'mul_add_relu'
    >>> joined(["mul"] * 10)
    'mul_mul_mul_mul_mul_mul_mul_mul_and_2_more'
    """
    every = list(names)
    more = f"_and_{len(every) - MOST_NAMED}_more" if len(every) > MOST_NAMED else ""
    return "_".join(every[:MOST_NAMED]) + more
