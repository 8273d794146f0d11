"""Spec: the metadata of a tensor, as an immutable, interned value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from .device import CPU
from .device import device as Device  # a field of Spec is called `device`
from .dtype import OPAQUE, DType
from .size import Size, shape

_interned: WeakValueDictionary[tuple, Spec] = WeakValueDictionary()


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Spec:
    """Shape, stride, dtype, device and pending conjugation or negation. Build with `make_spec()`, never directly.

    Equal specs are the same object, so a Spec hashes by identity. Plan caches use Specs as keys.
    """

    shape: Size
    stride: tuple[int, ...]  # in elements, not bytes; 0 on an expanded dimension
    dtype: DType
    device: Device
    conj: bool = False  # conjugation is pending: memory holds the conjugates of the elements
    neg: bool = False  # negation is pending: memory holds the negatives of the elements
    numel: int = field(init=False)
    is_contiguous: bool = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "numel", self._count())
        self._check_size()
        object.__setattr__(self, "is_contiguous", _is_contiguous(self.shape, self.stride, self.numel))

    def _count(self) -> int:
        return math.prod(self.shape)

    def _check_size(self) -> None:
        """Raises: RuntimeError if the number of elements, or a stride in bytes, needs more than 64 bits."""
        if max(self.stride, default=0) * self.dtype.itemsize >= 2**63:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes={list(self.shape)} and strides={list(self.stride)}"
            )
        if self.numel >= 2**63:
            if 0 in self.stride:
                raise RuntimeError(
                    f"numel: integer multiplication overflow\nsizes {list(self.shape)}, strides {self.stride}"
                )
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(self.shape)}")

    def __reduce__(self):  # so that unpickling returns the interned object of the process that unpickles
        return make_spec, (self.shape, self.stride, self.dtype, self.device, self.conj, self.neg)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize

    @property
    def span(self) -> int:
        """The distance in memory from the first element to the last, in elements, both included."""
        if self.numel == 0:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.stride, strict=True))

    @property
    def byte_stride(self) -> tuple[int, ...]:
        itemsize = self.dtype.itemsize
        return tuple(stride * itemsize for stride in self.stride)

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill `span` without gaps or overlaps, in any order of dimensions."""
        expected = 1
        for size, stride in sorted(
            zip(self.shape, self.stride, strict=True), key=lambda pair: (pair[1], pair[0])
        ):
            if size == 1:
                continue
            if stride != expected:
                return self.numel == 0
            expected *= size
        return True

    @property
    def repeats(self) -> bool:
        """Whether a dimension is expanded (stride 0), so that several indices refer to one element of memory."""
        if 0 not in self.stride or not self.numel:
            return False
        return any(stride == 0 and size > 1 for size, stride in zip(self.shape, self.stride, strict=True))

    @property
    def overlaps(self) -> bool:
        """Whether several indices may refer to one element of memory, as in expanded dimensions and windows of `unfold`."""
        if self.is_contiguous:
            return False
        reach = 1
        for stride, size in sorted(
            (stride, size) for stride, size in zip(self.stride, self.shape) if size > 1
        ):
            if stride < reach:
                return self.numel > 0
            reach += (size - 1) * stride
        return False

    def like(self, *, dtype: DType | None = None, device: Device | None = None) -> Spec:
        return make_spec(self.shape, self.stride, dtype or self.dtype, device or self.device)


def make_spec(
    shape, stride, dtype: DType, device: Device = CPU, conj: bool = False, neg: bool = False
) -> Spec:
    """The interned Spec with these parts; `shape` and `stride` hold plain ints."""
    key = (shape, stride, dtype, device, conj, neg)
    found = _interned.get(key)
    if found is None:
        if dtype.name in OPAQUE:
            raise NotImplementedError(
                f"{dtype}: weft knows the name of this dtype and has no operations for it"
            )
        sizes = shape if type(shape) is Size else Size(shape)
        found = _interned.setdefault(key, Spec(sizes, tuple(stride), dtype, device, conj, neg))
    return found


def contiguous_spec(sizes, dtype: DType, device: Device = CPU) -> Spec:
    """The Spec of a contiguous (row-major) tensor."""
    return make_spec(sizes if type(sizes) is Size else shape(sizes), contiguous_stride(sizes), dtype, device)


def contiguous_stride(sizes) -> tuple[int, ...]:
    """Row-major strides; a dimension of size 0 counts as 1.

    >>> contiguous_stride((2, 0, 3))
    (3, 3, 1)
    """
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size if size > 1 else 1
    return tuple(reversed(strides))


def strides_in_order(sizes, order) -> tuple[int, ...]:
    """Dense strides for which `order` lists the dimensions from outermost to innermost."""
    strides, step = [0] * len(sizes), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(sizes[dim], 1)
    return tuple(strides)


def _is_contiguous(sizes, strides, numel) -> bool:
    if numel == 0:
        return True
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
