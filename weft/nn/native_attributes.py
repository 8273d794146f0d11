"""Defines the look-up of parameters, buffers and submodules (`module.weight`) in machine code.

They are not attributes for Python, so CPython raises an AttributeError, drops it, and calls `Module.__getattr__`: 0.52 us on
AMD Zen 4. The machine code in the slot `tp_getattro` of modules looks into the same dictionaries in 0.03 us. `Module.__getattr__` stays
the definition: it answers for names that the dictionaries do not have, and for classes with a `__getattr__` of their own. If a
program assigns `__getattr__` or `__getattribute__` to a class, CPython writes its own function into the slot.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from ..engine.objects import Function, add_memory, add_object, compile_functions, name, set_slot, slot

_SLOT = "tp_getattro"
_MEMBERS = ("_parameters", "_modules", "_buffers")  # in the order of `Module.__getattr__`


def _function() -> Function:
    f = Function("module.getattribute", "ptr %self, ptr %key")
    f.require(f.same(f.type_of("%key"), name("str")), "python")
    kind = f.type_of("%self")
    of_class = f.let(f"call ptr {name('type_lookup')}(ptr {kind}, ptr %key)")
    f.require(f.same(of_class, "null"), "python")  # a method, a property
    own = f.call("PyObject_GenericGetDict", "%self", "null")
    f.branch(f.same(own, "null"), "missing", "begin")
    f.label("begin")
    value = f.call("PyDict_GetItemWithError", own, "%key")
    f.branch(f.same(value, "null"), _MEMBERS[0], "found")
    f.label("found")
    f.incref(value)
    f.decref(own)
    f.ret(value)
    for members, following in zip(_MEMBERS, (*_MEMBERS[1:], "dropped"), strict=True):
        f.label(members)
        found = f.call("PyDict_GetItemWithError", own, name(members))
        f.require(f.differ(found, "null"), "dropped")
        f.require(f.same(f.type_of(found), name("dict")), "dropped")
        f.incref(found)
        value = f.call("PyDict_GetItemWithError", found, "%key")
        f.branch(f.same(value, "null"), f"not_in{members}", f"in{members}")
        f.label(f"in{members}")
        f.incref(value)
        f.decref(found)
        f.decref(own)
        f.ret(value)
        f.label(f"not_in{members}")
        f.decref(found)
        f.go(following)
    f.label("dropped")
    f.decref(own)
    f.go("missing")
    f.label("missing")
    f.call("PyErr_Clear")
    f.go("python")
    f.label("python")
    f.ret(f.let(f"call ptr {name('python.getattribute')}(ptr %self, ptr %key)"))
    return f


@functools.cache
def _address(python: int) -> int:
    """The machine code. python: the address of the function that CPython has in the slots of classes with `__getattr__`."""
    for key in (*_MEMBERS, str, dict):
        add_object(key if isinstance(key, str) else key.__name__, key)
    lookup = ctypes.cast(ctypes.pythonapi._PyType_Lookup, ctypes.c_void_p).value
    assert lookup is not None
    add_memory("type_lookup", lookup)
    add_memory("python.getattribute", python)
    (address,) = compile_functions([_function()], "module.getattribute")
    return address


class NativeAttributes:
    """Puts the machine code into a class of modules and its subclasses, once calls in machine code are installed."""

    def __init__(self, module: Any):
        self.module, self.definition = module, module.__getattr__
        self.installed = False

    def install(self) -> None:
        self.python = slot(type("Asking", (), {"__getattr__": self.definition}), _SLOT)
        self.installed = hasattr(ctypes.pythonapi, "_PyType_Lookup")  # CPython may remove it
        if self.installed:
            self.put(self.module)

    def put(self, cls: Any) -> None:
        """Let machine code look up the attributes of a class and its subclasses, unless they look up attributes in another way."""
        usual = (
            cls.__getattr__ is self.definition
            and cls.__getattribute__ is object.__getattribute__
            and slot(cls, _SLOT) == self.python
        )
        if usual:
            set_slot(cls, _SLOT, _address(self.python))
        for subclass in cls.__subclasses__():
            self.put(subclass)
