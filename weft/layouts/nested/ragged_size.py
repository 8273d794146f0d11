"""RaggedSize: the size of a dim that differs between the components of a nested tensor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ...core.layout_spec import NotStrided
from ...core.size import SymbolicSize
from ...core.tensor import Tensor

_count = itertools.count(1)


class NoNumber(NotStrided):
    """A function computes with the size of a ragged dim. So it has no meaning for nested tensors, or needs a rule."""

    def __init__(self, size: RaggedSize):
        NotImplementedError.__init__(
            self,
            f"{size} is the size of a ragged dim and no int, because the components of a nested tensor have different sizes "
            "there: x.offsets().diff() has all of them",
        )


def _refused(self: RaggedSize, *others: Any) -> Any:
    raise NoNumber(self)


class RaggedSize(SymbolicSize):
    """A symbol, printed as `j1`. It equals itself only, and is no int, because each component has a size of its own.

    As in PyTorch, it counts as at least 2 in comparisons, so that programs which treat sizes of 0 and 1 apart can run.

    >>> size = RaggedSize(1)
    >>> size, 3 * size, size == RaggedSize(1), size == 3, size > 1
    (j1, 3*j1, False, False, True)
    """

    __slots__ = ("number", "__weakref__")

    def __init__(self, number: int | None = None):
        self.number = next(_count) if number is None else number

    def __mul__(self, factor: Any) -> Any:
        if type(factor) is not int:
            return NotImplemented
        return self if factor == 1 else RaggedStride(self, factor)

    __rmul__ = __mul__
    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = (
        _refused
    )
    __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refused

    def __ge__(self, other: Any) -> bool:
        if other is self or isinstance(other, int) and other <= 2:
            return True
        raise NoNumber(self)

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __gt__(self, other: Any) -> bool:
        return other is not self and self >= other + 1

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __repr__(self) -> str:
        return f"j{self.number}"

    def __index__(self) -> int:
        raise TypeError(str(NoNumber(self)))


class RaggedStride:
    """Represents a multiple of a RaggedSize: the stride of the batch dim of a jagged tensor."""

    __slots__ = ("size", "factor")

    def __init__(self, size: RaggedSize, factor: int):
        self.size, self.factor = size, factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedStride) and (self.size, self.factor) == (other.size, other.factor)

    def __hash__(self) -> int:
        return hash((self.size, self.factor))

    def _refused(self, *others: Any) -> Any:
        raise NoNumber(self.size)

    __mul__ = __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = __floordiv__ = __mod__ = __neg__ = _refused

    def __repr__(self) -> str:
        return f"{self.factor}*{self.size}"


# Jagged tensors have one size if they have one tensor of offsets, as in PyTorch: their structures are equal without a comparison.
_of_offsets: WeakKeyDictionary[Any, dict[tuple, RaggedSize]] = WeakKeyDictionary()
# In strided nested tensors, the sizes decide.
_of_sizes: WeakValueDictionary[tuple[int, ...], RaggedSize] = WeakValueDictionary()


def size_of_offsets(offsets: Tensor) -> RaggedSize:
    """The ragged size that belongs to these offsets (or lengths)."""
    key = offsets._byte_offset, offsets.spec
    known = _of_offsets.setdefault(offsets._storage, {})
    return known.get(key) or known.setdefault(key, RaggedSize())


def size_of_sizes(sizes: Sequence[int]) -> int | RaggedSize:
    """The common size of the components in a dim, a RaggedSize if they differ."""
    if len(set(sizes)) == 1:
        return sizes[0]
    key = tuple(sizes)
    found = _of_sizes.get(key)
    return found if found is not None else _of_sizes.setdefault(key, RaggedSize())
