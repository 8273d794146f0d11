"""Which elements of a storage a tensor reads, and their values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.grad_mode import no_grad
from ..core.layout_spec import LayoutSpec
from ..core.tensor import Tensor


class Named(NamedTuple):
    """A tensor, the name that the picture gives it, and its place among the tensors of the picture."""

    name: str
    tensor: Tensor
    number: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def start(self) -> int:
        """The byte of the storage at which the first element begins."""
        return self.tensor._byte_offset

    @property
    def byte_strides(self) -> tuple[int, ...]:
        return tuple(stride * self.tensor.itemsize for stride in self.tensor.stride())

    def byte_of(self, index: Sequence[int]) -> int:
        """The byte of the storage at which an element begins."""
        return self.start + sum(i * stride for i, stride in zip(index, self.byte_strides, strict=True))

    def bytes_before(self, end: int) -> set[int]:
        """The bytes below `end` at which elements begin."""
        if 0 in self.shape:
            return set()
        found = {self.start} if self.start < end else set()
        for size, stride in zip(self.shape, self.byte_strides, strict=True):
            if stride and size > 1:
                found = {each for low in found for each in itertools.islice(range(low, end, stride), size)}
        return found


def named(function: str, tensors: Sequence[Any], keywords: Mapping[str, Any]) -> list[Named]:
    """The tensors with their names; those without one are called a, b, c.

    Raises: TypeError for what is no tensor, NotImplementedError for a tensor whose layout has no strides.
    """
    letters = "abcdefghijklmnopqrstuvwxyz"
    pairs: Iterable[tuple[str, Any]] = (
        *((letters[k] if k < 26 else f"tensor {k}", each) for k, each in enumerate(tensors)),
        *keywords.items(),
    )
    found = [Named(name, check(function, each), number) for number, (name, each) in enumerate(pairs)]
    if not found:
        raise TypeError(
            f"{function}() draws tensors, but none was given: {function}(x), {function}(x=x, row=x[0])"
        )
    return found


def check(function: str, value: Any) -> Tensor:
    """The tensor `value`, if it can be drawn.

    Raises: as `named`.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{function}() draws tensors, but was given {type(value).__name__}: use torch.tensor(...)"
        )
    if isinstance(value.spec, LayoutSpec):
        rules = value.spec.rules
        raise NotImplementedError(f"{function}() does not draw {rules.name} tensors: {rules.instead}")
    return value


def values(tensor: Tensor) -> Any:
    """The elements as nested lists of Python's numbers; None for a tensor without memory."""
    if not tensor.device.backend.has_memory:
        return None
    with no_grad():
        return tensor.detach().tolist()


def stored(tensor: Tensor, first: int, count: int) -> list[Any] | None:
    """`count` elements of the storage from element `first` on, in the dtype of the tensor; None without memory."""
    with no_grad():
        return values(tensor.detach().as_strided((count,), (1,), first))
