"""Spec: the metadata of a tensor, as an immutable, interned value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from .device import CPU
from .device import device as Device  # a field of Spec is called `device`
from .dtype import OPAQUE, DType
from .size import Size, shape
from .symbols import Symbol, Trace, Untraceable, polynomial_of, trace_of

_interned: WeakValueDictionary[tuple, Spec] = WeakValueDictionary()
_references: dict = _interned.data  # type: ignore[attr-defined]


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
    kind: Any = field(
        init=False
    )  # a SpecKind, None until `kind_of` makes it, or the Trace of a Spec with symbols

    def __post_init__(self):
        object.__setattr__(self, "kind", None)
        object.__setattr__(self, "numel", self._count())
        self._check_size()
        object.__setattr__(self, "is_contiguous", _is_contiguous(self.shape, self.stride, self.numel))

    def _count(self) -> int:
        return math.prod(self.shape)

    @property
    def symbols(self) -> Trace | None:
        """The trace of the symbols among the sizes and strides; None if there are none."""
        return self.kind if type(self.kind) is Trace else None

    def _check_size(self) -> None:
        """Raises: RuntimeError if the number of elements, or a stride in bytes, needs more than 64 bits."""
        if trace := trace_of((*self.shape, *self.stride)):
            if self.numel >= MOST_SYMBOLIC:
                raise trace.fail("more than 2**59 elements")
            return
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
    try:
        reference = _references.get(
            key
        )  # the dictionary behind `_interned`: its own `get` takes as long as the rest
    except Untraceable:
        trace = trace_of((*shape, *stride))
        assert trace is not None
        return symbolic_spec(trace, shape, stride, dtype, device, conj, neg)
    found = reference() if reference is not None else None
    if found is None:
        if dtype.name in OPAQUE:
            raise NotImplementedError(
                f"{dtype}: weft knows the name of this dtype and has no operations for it"
            )
        sizes = shape if type(shape) is Size else Size(shape)
        found = _interned.setdefault(key, Spec(sizes, tuple(stride), dtype, device, conj, neg))
    return found


class SpecKind:
    """What specs have in common that differ only in their sizes and strides. Equal kinds are one object.

    sizes: 0, 1, or 2 for every larger size. strides: the same of the strides; None if they are those of `contiguous_stride`.
    """

    __slots__ = ("sizes", "strides", "dtype", "device", "conj", "neg")

    def __init__(self, *parts: Any):
        self.sizes, self.strides, self.dtype, self.device, self.conj, self.neg = parts


_kinds: dict[tuple, SpecKind] = {}
_MOST_KINDS = 1 << 14


def kind_of(spec: Spec) -> SpecKind:
    """The kind of a spec, which the spec keeps."""
    strides = None
    if spec.stride != contiguous_stride(spec.shape):
        strides = tuple([stride if stride < 2 else 2 for stride in spec.stride])
    sizes = tuple([size if size < 2 else 2 for size in spec.shape])
    key = sizes, strides, spec.dtype, spec.device, spec.conj, spec.neg
    found = _kinds.get(key)
    if found is None:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        found = _kinds[key] = SpecKind(*key)
    object.__setattr__(spec, "kind", found)
    return found


def symbolic_spec(trace: Trace, sizes, strides, dtype: DType, device: Device, conj: bool, neg: bool) -> Spec:
    """The Spec of a trace with these parts.

    Planning code asks whether specs are one object. So a spec that has the values of another one of the trace is that one, and
    guards hold that specs of other values differ.
    """
    sizes, strides = shape(sizes), tuple(strides)
    for other in trace.specs:
        if (other.dtype, other.device, other.conj, other.neg) != (dtype, device, conj, neg):
            continue
        if len(other.shape) == len(sizes) and _is_same(trace, other, sizes, strides):
            return other
    for stride in strides:
        if type(stride) is Symbol and stride >= MOST_SYMBOLIC:
            raise trace.fail("strides beyond 2**59")
    made = Spec(sizes, strides, dtype, device, conj, neg)
    object.__setattr__(made, "kind", trace)
    trace.specs.append(made)
    return made


# Elements: plans for more are made one by one, so that templates need no check of overflow.
MOST_SYMBOLIC = 1 << 59


def _is_same(trace: Trace, other: Spec, sizes: tuple, strides: tuple) -> bool:
    own, theirs = (*sizes, *strides), (*other.shape, *other.stride)
    values = [[trace.value_of(polynomial_of(each)) for each in row] for row in (own, theirs)]
    if values[0] == values[1]:
        return all([trace.is_equal(a, b) for a, b in zip(own, theirs, strict=True) if a is not b])
    pairs = [pair for pair, a, b in zip(zip(own, theirs), *values) if a != b]
    if not any(trace.never_equal(*pair) for pair in pairs):
        trace.is_equal(*pairs[0])
    return False


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
