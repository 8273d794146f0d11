"""What dispatch needs besides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from ..utils import _toposort as _toposort
from ..utils import raises, reverse_dict

__all__ = ["expand_tuples", "groupby", "raises", "reverse_dict", "typename"]


def expand_tuples(L: Any) -> list[tuple]:  # noqa: N803 (PyTorch's name)
    """All choices from the tuples in a list.

    >>> expand_tuples([1, (2, 3)])
    [(1, 2), (1, 3)]
    """
    return list(itertools.product(*(each if isinstance(each, tuple) else (each,) for each in L)))


def groupby(func: Callable, seq: Iterable) -> dict[Any, list]:
    """The elements in lists by `func(element)`."""
    result: dict[Any, list] = {}
    for each in seq:
        result.setdefault(func(each), []).append(each)
    return result


def typename(type: Any) -> str:
    """The name of a type, or of a tuple of types.

    >>> typename(int), typename((int, float))
    ('int', '(int, float)')
    """
    if hasattr(type, "__name__"):
        return type.__name__
    return typename(*type) if len(type) == 1 else f"({', '.join(map(typename, type))})"
