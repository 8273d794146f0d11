"""LayoutSpec: the metadata of a tensor that is not plain, because it is sparse, quantized, nested or named.

A plain tensor is elements in strided memory, and its spec is a `Spec`. Every other tensor is an object of the same class
`Tensor`, and only its spec tells it apart. No op makes a plan for a LayoutSpec. Calls of public functions with such a tensor
go to the rules of its layout instead (`core/layout_calls.py`), so plain tensors do not pay for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakValueDictionary

from .device import device as Device  # a field of Spec is called `device`
from .dtype import DType
from .layout import Layout, strided
from .locks import new_lock
from .size import Size
from .spec import FIELDS, Spec, check_size, is_row_major

_interned: WeakValueDictionary[tuple, LayoutSpec] = WeakValueDictionary()
# Called once, before the first LayoutSpec of the process is made.
first_layout_hooks: list[Callable[[], None]] = []


class LayoutSpec(Spec):
    """Shape, dtype and device of a tensor, its layout, and what else its layout knows. Build with `layout_spec()`.

    Equal specs are the same object, as with `Spec`. `stride` is that of the memory if the layout has strided memory, and that
    of a contiguous tensor otherwise.
    """

    __slots__ = ("layout", "rules", "detail")

    layout: Layout
    rules: Any  # `core/layout_calls.Rules`
    detail: tuple  # what the layout says beyond that; hashable

    @property
    def names(self) -> tuple[str | None, ...] | None:
        """The names of the dims; None if the layout has none."""
        return self.rules.names_of(self)

    @property
    def is_dense(self) -> bool:
        return self.rules.is_dense(self)

    def __reduce__(self):
        parts = self.shape, self.stride, self.dtype, self.device, self.layout, self.rules, self.detail
        return layout_spec, (*parts, self.conj, self.neg)

    def like(self, *, dtype: DType | None = None, device: Device | None = None) -> LayoutSpec:
        parts = self.layout, self.rules, self.detail
        return layout_spec(self.shape, self.stride, dtype or self.dtype, device or self.device, *parts)


def layout_spec(
    shape: Iterable[int],
    stride: tuple[int, ...],
    dtype: DType,
    device: Device,
    layout: Layout,
    rules: Any,
    detail: tuple = (),
    conj: bool = False,
    neg: bool = False,
) -> LayoutSpec:
    """The interned LayoutSpec with these parts."""
    if first_layout_hooks:
        _run_hooks()
    sizes = shape if type(shape) is Size else Size(shape)
    key = (sizes, stride, dtype, device, layout, rules, detail, conj, neg)
    found = _interned.get(key)
    if found is None:
        found = _interned.setdefault(key, _new_layout_spec(*key))
    return found


def _new_layout_spec(
    sizes: Size,
    stride: tuple,
    dtype: DType,
    device: Device,
    layout: Layout,
    rules: Any,
    detail: tuple,
    conj: bool,
    neg: bool,
) -> LayoutSpec:
    made = object.__new__(LayoutSpec)
    for name, value in (("layout", layout), ("rules", rules), ("detail", detail), ("shape", sizes)):
        object.__setattr__(made, name, value)
    numel = rules.numel_of(made)
    values = sizes, stride, dtype, device, conj, neg, numel, is_row_major(sizes, stride, numel), None
    for name, value in zip(FIELDS, values, strict=True):
        object.__setattr__(made, name, value)
    check_size(made)
    return made


_lock = new_lock()


def _run_hooks() -> None:
    with _lock:  # another thread that makes its first LayoutSpec meanwhile waits for the guards
        while first_layout_hooks:
            first_layout_hooks[-1]()
            first_layout_hooks.pop()


def is_strided(spec: Spec) -> bool:
    """Whether the elements of a tensor with this spec are in strided memory."""
    return type(spec) is Spec or spec.layout is strided  # type: ignore[attr-defined]


def as_cotangent(tensor: Any) -> Any:
    """A tensor that a user gives as a cotangent, as it goes through the graph."""
    spec = tensor.spec
    return tensor if type(spec) is Spec else spec.rules.cotangent(tensor)


class NotStrided(NotImplementedError):
    """An operation that works on strided memory was asked to plan for, or to read, a tensor that has none."""

    def __init__(self, spec: LayoutSpec):
        self.spec = spec
        super().__init__(
            f"this operation is not implemented for {spec.rules.name} tensors: {spec.rules.instead}"
        )


def refuse_layouts(key: Iterable[Any]) -> None:
    """Raises: NotStrided if a part of the key of a plan is a LayoutSpec."""
    for part in key:
        if type(part) is LayoutSpec:
            raise NotStrided(part)
        if type(part) is tuple:
            refuse_layouts(part)
