"""The getters of Tensor's properties in machine code: `shape`, `dtype`, `requires_grad`, `grad` and others.

CPython reads a property by the C function in the slot `tp_descr_get` of the property's class. Each of these properties has a
class of its own (`core/native_property.py`), and machine code takes the place of this C function. The functions of Python stay the
definition: they answer for subclasses, while modes are on, and where the getter warns.
"""

from __future__ import annotations

from ..core.layout import strided
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.objects import SIZE, TENSOR, Function, add_memory, add_object, name, offsets, set_slot, slot
from ..families import native_calls
from . import tensor as _tensor  # noqa: F401 (adds the properties of autograd to Tensor)
from .dual import Dual
from .graph import Leaf

_SPEC = offsets(Spec)


class _Getter(Function):
    """A getter of `%tensor`. It ends by `answer`; the label `unusual` leaves the call to the function of Python."""

    def __init__(self, called: str):
        super().__init__(f"getter.{called}", "ptr %self, ptr %tensor, ptr %class")
        # `Tensor.shape.getter(f)` is a property of the same class with another function.
        self.require(self.same("%self", name(f"property.{called}")), "unusual")
        self.require(self.differ("%tensor", "null"), "unusual")  # null for `Tensor.shape`
        self.require(self.is_plain("%tensor"), "unusual")
        self.require(self.same(self.load(name("watched"), 1, "i8"), "0", "i8"), "unusual")  # no mode is on

    def answer(self, value: str) -> Function:
        self.incref(value)
        return self.end(value)

    def end(self, value: str) -> Function:
        """Return a reference that the function owns, or null after an error."""
        self.ret(value)
        self.label("unusual")
        self.ret(self.let(f"call ptr {name('property_get')}(ptr %self, ptr %tensor, ptr %class)"))
        return self

    def filled(self, field: str) -> str:
        """The value of a slot of the tensor. It is null while other code builds the tensor, which `gc.get_objects()` shows already."""
        value = self.load("%tensor", TENSOR[field])
        self.require(self.differ(value, "null"), "unusual")
        return value

    def field_of_spec(self, field: str) -> str:
        return self.load(self.filled("spec"), _SPEC[field])

    def truth(self, condition: str) -> Function:
        return self.answer(self.let(f"select i1 {condition}, ptr {name('true')}, ptr {name('false')}"))

    def edge_is(self, *kinds: str) -> str:
        """Whether the tensor's edge is None, or of one of these classes."""
        edge = self.filled("_autograd")
        found, kind = self.same(edge, name("none")), self.type_of(edge)
        for each in kinds:
            found = self.let(f"or i1 {found}, {self.same(kind, name(each))}")
        return found


def _functions() -> list[Function]:
    shape, dtype, device, layout, ndim, requires_grad, is_leaf, grad = map(_Getter, NAMES)
    count = ndim.load(ndim.field_of_spec("shape"), SIZE, "i64")
    spec = layout.filled("spec")
    layout.require(layout.same(layout.type_of(spec), name("spec_type")), "unusual")
    asked = requires_grad.edge_is("dual")
    value = grad.call("PyObject_GetAttr", "%tensor", name("_grad"))
    grad.branch(grad.same(value, name("none")), "nothing", "found")
    grad.label("nothing")
    grad.branch(grad.edge_is("leaf"), "found", "result")
    grad.label("result")  # of an operation: the function of Python warns
    grad.decref(value)
    grad.go("unusual")
    grad.label("found")
    return [
        shape.answer(shape.field_of_spec("shape")),
        dtype.answer(dtype.field_of_spec("dtype")),
        device.answer(device.field_of_spec("device")),
        layout.answer(name("strided")),
        ndim.end(ndim.call("PyLong_FromSsize_t", count)),
        requires_grad.truth(requires_grad.let(f"xor i1 {asked}, true")),
        is_leaf.truth(is_leaf.edge_is("leaf", "dual")),
        grad.end(value),
    ]


NAMES = ("shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "grad")
_PROPERTIES = {each: vars(Tensor)[each] for each in NAMES}


def _prepare() -> None:
    for key, value in {
        "dual": Dual,
        "leaf": Leaf,
        "strided": strided,
        "_grad": "_grad",
        "spec_type": Spec,
    }.items():
        add_object(key, value)
    for called, value in _PROPERTIES.items():
        add_object(f"property.{called}", value)
    add_memory("property_get", slot(property, "tp_descr_get"))


def _install(addresses: dict[str, int]) -> None:
    for called, value in _PROPERTIES.items():
        set_slot(type(value), "tp_descr_get", addresses[f"getter.{called}"])


native_calls.parts.append(
    native_calls.Part(_functions, _prepare, tuple(f"getter.{each}" for each in NAMES), _install)
)
