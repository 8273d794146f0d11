"""Defines the names of `x[index]`."""

from __future__ import annotations

from typing import Any

from ...core.dtype import bool_
from ...core.tensor import Tensor
from .tensors import Names, plain


def plain_index(index: Any) -> Any:
    """Return the index without names."""
    if isinstance(index, Tensor):
        return plain(index)
    return type(index)(map(plain_index, index)) if type(index) in (tuple, list) else index


def indexed_names(names: Names, index: Any) -> Names:
    """The names of the dims of `x[index]`, where `names` are those of x.

    An int takes its dim away, a slice keeps it, and None makes a dim without a name. A vector of indices or a mask of one dim keeps
    the name of its dim. Other tensors give dims without names, and several of them give a result without any.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    tensors = [each for each in items if _dims_of(each) > 0]
    if len(tensors) > 1 or any(
        isinstance(each, bool) or _is_bool(each) and not _dims_of(each) for each in items
    ):
        return ()
    used = sum(_taken(each) for each in items)
    if not any(each is ... for each in items):
        items.append(...)
    found: list[str | None] = []
    place = 0
    for each in items:
        count = len(names) - used if each is ... else _taken(each)
        if each is None:
            found.append(None)
        elif each is ... or isinstance(each, slice) or _dims_of(each) == 1:
            found.extend(names[place : place + count])
        elif _is_bool(each):
            found.append(None)
        else:
            found.extend((None,) * _dims_of(each))
        place += count
    return tuple(found)


def _is_bool(item: Any) -> bool:
    while isinstance(item, (list, tuple)) and item:
        item = item[0]
    return item.dtype is bool_ if isinstance(item, Tensor) else isinstance(item, bool)


def _dims_of(item: Any) -> int:
    """Return the number of dims of an index; 0 for an int."""
    if isinstance(item, (list, tuple)):
        return 1 + (_dims_of(item[0]) if item else 0)
    return getattr(item, "ndim", 0)


def _taken(item: Any) -> int:
    """How many dims of the tensor an index stands for."""
    if item is None or item is ...:
        return 0
    return _dims_of(item) if _is_bool(item) else 1
