"""torch.Size: the shape of a tensor, a tuple whose slices and sums are Sizes as well."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex

from .symbols import Symbol


class Size(tuple):
    """The sizes of all dimensions.

    >>> import weft as torch
    >>> torch.Size([2, 3]), torch.Size([2, 3]).numel(), torch.Size([2]) + (3,)
    (torch.Size([2, 3]), 6, torch.Size([2, 3]))
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Size:
        return tuple.__new__(cls, map(_size, sizes))

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return tuple.__new__(Size, found) if isinstance(index, slice) else found

    def __add__(self, other: tuple) -> Size:
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: tuple) -> Size:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Size:
        return tuple.__new__(Size, tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self):  # by a function of weft, because `__module__` of the class names torch
        return shape, (tuple(self),)


class SymbolicSize:
    """Base class of sizes that are no ints: those of dims whose size differs within one tensor."""

    __slots__ = ()


def _size(value: Any) -> Any:
    if type(value) is int or type(value) is Symbol or isinstance(value, SymbolicSize):
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item is of type '{type(value).__name__}': {value!r})"
        ) from None


def shape(sizes: Iterable[int]) -> Size:
    """A Size of plain ints, without checks."""
    return tuple.__new__(Size, sizes)
