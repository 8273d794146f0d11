"""Spec: the metadata of a tensor, as an immutable, interned value."""

from __future__ import annotations

import math
import sys
from typing import Any
from weakref import ref

from .device import CPU
from .device import device as Device  # a field of Spec is called `device`
from .dtype import OPAQUE, DType
from .locks import new_lock
from .size import Size, shape
from .symbols import Symbol, Trace, Untraceable, trace_of, value_of


class _Fields:
    """The slots of a Spec. An object of this class becomes a Spec when all are set: `object.__setattr__` is slower by far."""

    __slots__ = (
        *("shape", "stride", "dtype", "device", "conj", "neg", "numel", "is_contiguous", "kind"),
        "__weakref__",
    )

    shape: Size
    stride: tuple[int, ...]  # in elements, not bytes; 0 on an expanded dimension
    dtype: DType
    device: Device
    conj: bool  # conjugation is pending: memory holds the conjugates of the elements
    neg: bool  # negation is pending: memory holds the negatives of the elements
    numel: int
    is_contiguous: bool
    kind: Any  # a SpecKind, None until `kind_of` makes it, or the Trace of a Spec with symbols


class Spec(_Fields):
    """Shape, stride, dtype, device and pending conjugation or negation. Build with `make_spec()`, never directly.

    Equal specs are the same object, so a Spec hashes by identity. Plan caches use Specs as keys.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r} of a Spec")

    def __repr__(self) -> str:
        parts = (f"{each}={getattr(self, each)!r}" for each in FIELDS[:6])
        return f"Spec({', '.join(parts)})"

    @property
    def symbols(self) -> Trace | None:
        """The trace of the symbols among the sizes and strides; None if there are none."""
        return self.kind if type(self.kind) is Trace else None

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


# What a Spec has besides its weak references.
FIELDS = _Fields.__slots__[:9]


class Family(dict):
    """The interned specs of one dtype, device and pending conjugation: (shape, stride) to a weak reference of the Spec.

    References to specs that are gone remain until the dictionary has `limit` entries. A callback of each reference would cost
    half as much as the Spec.
    """

    __slots__ = ("dtype", "device", "conj", "neg", "limit")

    def __init__(self, dtype: DType, device: Device, conj: bool, neg: bool):
        self.dtype, self.device, self.conj, self.neg = dtype, device, conj, neg
        self.limit = _FEWEST

    def intern(self, made: Spec) -> Spec:
        """The Spec with these sizes and strides: an older one if there is one, else this one."""
        if len(self) >= self.limit:
            self._sweep()
        key, reference = (made.shape, made.stride), ref(made)
        while (found := self.setdefault(key, reference)()) is None:
            with _lock:
                if (old := self.get(key)) is not None and old() is None:
                    self[key] = reference
        return found

    def _sweep(self) -> None:
        """Drop the references to specs that are gone."""
        with _lock:
            for key in list(self):  # one step for other threads, unlike a list of items
                if (reference := self.get(key)) is not None and reference() is None:
                    self.pop(key, None)
            self.limit = max(_FEWEST, 2 * len(self))


_lock = new_lock()  # guards the removal of entries
_families: dict[tuple, Family] = {}
# Entries; below this number a family is not swept. A reference with its key takes 300 bytes.
_FEWEST = 4096


def family(dtype: DType, device: Device, conj: bool, neg: bool) -> Family:
    """The specs with these parts."""
    key = dtype, device, conj, neg
    found = _families.get(key)
    return found if found is not None else _families.setdefault(key, Family(*key))


def make_spec(
    shape, stride, dtype: DType, device: Device = CPU, conj: bool = False, neg: bool = False
) -> Spec:
    """The interned Spec with these parts; `shape` and `stride` hold plain ints.

    Raises: RuntimeError if the number of elements, or a stride in bytes, needs more than 64 bits.
    """
    own = family(dtype, device, conj, neg)
    try:
        reference = own.get((shape, stride))
    except Untraceable:
        trace = trace_of((*shape, *stride))
        assert trace is not None
        return symbolic_spec(trace, shape, stride, dtype, device, conj, neg)
    if reference is not None and (found := reference()) is not None:
        return found
    made = _new_spec(shape, stride, dtype, device, conj, neg)
    if not 0 < made.numel < _MOST_UNCHECKED or not made.is_contiguous:
        check_size(made)
    if dtype.name in OPAQUE:
        raise NotImplementedError(f"{dtype}: weft knows the name of this dtype and has no operations for it")
    return own.intern(made)


def sized_spec(
    own: Family, sizes: Size, strides: tuple[int, ...], numel: int, is_contiguous: bool, kind: Any
) -> Spec:
    """As `make_spec`, for a template, which knows these properties and that no check is needed."""
    reference = own.get((sizes, strides))
    if reference is not None and (found := reference()) is not None:
        return found
    return own.intern(
        _filled(sizes, strides, own.dtype, own.device, own.conj, own.neg, numel, is_contiguous, kind)
    )


# Elements: so many need less than 64 bits, in bytes as well.
_MOST_UNCHECKED = 1 << 58


def _new_spec(sizes: Any, strides: Any, dtype: DType, device: Device, conj: bool, neg: bool) -> Spec:
    numel = math.prod(sizes)
    is_contiguous = strides == contiguous_stride(sizes) or is_row_major(sizes, strides, numel)
    sizes = sizes if type(sizes) is Size else shape(sizes)
    return _filled(sizes, tuple(strides), dtype, device, conj, neg, numel, is_contiguous, None)


def _filled(sizes, strides, dtype, device, conj, neg, numel, is_contiguous, kind) -> Spec:
    made: Any = _Fields()
    made.shape = sizes
    made.stride = strides
    made.dtype = dtype
    made.device = device
    made.conj = conj
    made.neg = neg
    made.numel = numel
    made.is_contiguous = is_contiguous
    made.kind = kind
    made.__class__ = Spec
    return made


_SETTERS = [getattr(_Fields, name).__set__ for name in FIELDS]


def _filled_by_setters(*values: Any) -> Spec:
    """As `_filled`, which is faster, but a change of an object's class stops all threads of free-threaded Python."""
    made = object.__new__(Spec)
    for set_field, value in zip(_SETTERS, values, strict=True):
        set_field(made, value)
    return made


if not getattr(sys, "_is_gil_enabled", lambda: True)():
    _filled = _filled_by_setters  # type: ignore[assignment]


def check_size(spec: Spec) -> None:
    """Raises: RuntimeError if the number of elements, or a stride in bytes, needs more than 64 bits."""
    sizes, strides = list(spec.shape), list(spec.stride)
    if max(strides, default=0) * spec.dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes} and strides={strides}")
    if spec.numel >= 2**63:
        if 0 in strides:
            raise RuntimeError(
                f"numel: integer multiplication overflow\nsizes {sizes}, strides {spec.stride}"
            )
        raise RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")


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
    sizes: tuple[int, ...] = spec.shape
    strides = None
    if 1 in sizes or 0 in sizes:
        if spec.stride != contiguous_stride(sizes):
            strides = _classes(spec.stride)
        sizes = _classes(sizes)
    else:
        if not spec.is_contiguous:
            strides = _classes(spec.stride)
        sizes = (2,) * len(sizes)
    found = _kind(sizes, strides, spec.dtype, spec.device, spec.conj, spec.neg)
    object.__setattr__(spec, "kind", found)
    return found


def _kind(*key: Any) -> SpecKind:
    found = _kinds.get(key)
    if found is None:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        found = _kinds[key] = SpecKind(*key)
    return found


def known_kind(spec: Spec, trace: Trace) -> SpecKind | None:
    """The kind of all specs that a template makes in the place of this one, whose sizes are symbols; None if they may differ."""
    numbers = (*spec.shape, *(() if spec.is_contiguous else spec.stride))
    if not all([trace.is_known_at_least(each, 2) or type(each) is int for each in numbers]):
        return None
    if any([type(each) is int and each < 2 for each in spec.shape]):
        return None
    strides = None if spec.is_contiguous else _classes(spec.stride)
    return _kind((2,) * len(spec.shape), strides, spec.dtype, spec.device, spec.conj, spec.neg)


def _classes(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([number if number < 2 else 2 for number in numbers])


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
    made = _new_spec(sizes, strides, dtype, device, conj, neg)
    if made.numel >= MOST_SYMBOLIC:
        raise trace.fail("more than 2**59 elements")
    object.__setattr__(made, "kind", trace)
    trace.specs.append(made)
    return made


# Elements: plans for more are made one by one, so that templates need no check of overflow.
MOST_SYMBOLIC = 1 << 59


def _is_same(trace: Trace, other: Spec, sizes: tuple, strides: tuple) -> bool:
    own, theirs = (*sizes, *strides), (*other.shape, *other.stride)
    values = [[value_of(each) for each in row] for row in (own, theirs)]
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
    if len(sizes) < 2:
        return (1,) * len(sizes)
    if len(sizes) == 2:
        return (sizes[1] if sizes[1] > 1 else 1, 1)
    strides, step = [], 1
    for size in reversed(tuple(sizes)):  # a Size would call its `__getitem__`
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


def is_row_major(sizes, strides, numel) -> bool:
    """Whether elements lie in row-major order without gaps. The strides of dims of size 1 do not count."""
    if numel == 0:
        return True
    expected = 1
    for size, stride in zip(reversed(tuple(sizes)), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True
