"""LLVM IR that works on Python objects: a writer of functions, the offsets of slots, and the names of objects.

To add a function of machine code, write it with `Function` and compile it together with others:

    f = Function("spec_of", "ptr %self")            # define ptr @spec_of(ptr %self)
    f.require(f.same(f.type_of("%self"), name("tensor")), "unusual")
    spec = f.load("%self", TENSOR["spec"])
    f.incref(spec)
    f.ret(spec)
    f.label("unusual")
    f.ret(f.python(name("spec_in_python"), "%self"))
    (address,) = compile_functions([f], "spec_of")

`name("tensor")` is an external symbol of the IR. Its address is that of an object or of memory that `add_object` or
`add_memory` made known before. The IR contains no address, because its machine code is loaded from the disk cache by later
processes.

Each function runs while the thread holds the GIL. It must not run Python code, by a call or by freeing or allocating an object,
between the reading of a pointer from a table or an object and the end of its use, unless it owns a reference.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ..core.storage import Storage
from ..core.tensor import Tensor
from . import tiers
from .host import add_symbol, keepalive

# `sysconfig` takes 2 ms to import, and there are no such builds of older versions.
FREE_THREADED = sys.version_info >= (3, 13) and bool(
    importlib.import_module("sysconfig").get_config_var("Py_GIL_DISABLED")
)

# Offsets in bytes of fields in CPython's objects, the same from 3.11 to 3.14. Free-threaded builds have a larger header.
TYPE = object.__basicsize__ - 8
SIZE = object.__basicsize__  # of a list or a tuple
LIST_ITEMS, LIST_ROOM = SIZE + 8, SIZE + 16
TUPLE_ITEMS = tuple.__basicsize__
BYTES = bytes.__basicsize__ - 1
NUMBER_METHODS = SIZE + 80  # of a type, PyTypeObject.tp_as_number


def offset(cls: type, slot: str) -> int:
    """Return the offset of a slot in the objects of a class, in bytes: PyMemberDef.offset of its descriptor."""
    member = ctypes.c_void_p.from_address(id(cls.__dict__[slot]) + object.__basicsize__ + 24).value
    assert member is not None
    return ctypes.c_ssize_t.from_address(member + 16).value


def offsets(cls: Any) -> dict[str, int]:
    """Return the offsets of all slots of a class and of its bases."""
    places = [(base, slot) for base in cls.__mro__ for slot in vars(base).get("__slots__", ())]
    return {slot: offset(base, slot) for base, slot in places if slot not in ("__dict__", "__weakref__")}


TENSOR, STORAGE = offsets(Tensor), offsets(Storage)


# ---- Names ---------------------------------------------------------------------------------------------------------------


def name(key: str) -> str:
    """Return the symbol of an object or of memory in IR."""
    return f'@"weft.{key}"'


def add_object(key: str, value: Any) -> None:
    """Let `name(key)` be the address of a Python object, which stays alive until the process ends."""
    add_symbol(f"weft.{key}", id(keepalive(value)))


def add_memory(key: str, address: int) -> None:
    """Let `name(key)` be this address."""
    add_symbol(f"weft.{key}", address)


# ---- Functions -----------------------------------------------------------------------------------------------------------

# The functions of CPython that IR calls: the type of the result, and those of the parameters.
_API = {
    "Py_IncRef": ("void", "ptr"),
    "Py_DecRef": ("void", "ptr"),
    "PyBool_FromLong": ("ptr", "i64"),
    "PyBytes_FromStringAndSize": ("ptr", "ptr, i64"),
    "PyDict_DelItem": ("i32", "ptr, ptr"),
    "PyDict_GetItemWithError": ("ptr", "ptr, ptr"),
    "PyDict_New": ("ptr", ""),
    "PyDict_SetItem": ("i32", "ptr, ptr, ptr"),
    "PyDict_Size": ("i64", "ptr"),
    "PyErr_Clear": ("void", ""),
    "PyErr_Fetch": ("void", "ptr, ptr, ptr"),
    "PyErr_Occurred": ("ptr", ""),
    "PyErr_ExceptionMatches": ("i32", "ptr"),
    "PyErr_Restore": ("void", "ptr, ptr, ptr"),
    "PyErr_SetInterrupt": ("void", ""),
    "PyFloat_AsDouble": ("double", "ptr"),
    "PyFloat_FromDouble": ("ptr", "double"),
    "PyIter_Next": ("ptr", "ptr"),
    "PyList_Append": ("i32", "ptr, ptr"),
    "PyList_New": ("ptr", "i64"),
    "PyList_Size": ("i64", "ptr"),
    "PyLong_AsLongLong": ("i64", "ptr"),
    "PyLong_AsLongLongAndOverflow": ("i64", "ptr, ptr"),
    "PyLong_AsVoidPtr": ("ptr", "ptr"),
    "PyLong_FromLongLong": ("ptr", "i64"),
    "PyLong_FromSsize_t": ("ptr", "i64"),
    "PyLong_FromVoidPtr": ("ptr", "ptr"),
    "PyNumber_Add": ("ptr", "ptr, ptr"),
    "PyNumber_Positive": ("ptr", "ptr"),
    "PyObject_Call": ("ptr", "ptr, ptr, ptr"),
    "PyObject_CallNoArgs": ("ptr", "ptr"),
    "PyObject_GenericGetDict": ("ptr", "ptr, ptr"),
    "PyObject_GetAttr": ("ptr", "ptr, ptr"),
    "PyObject_RichCompareBool": ("i32", "ptr, ptr, i32"),
    "PyObject_SetAttr": ("i32", "ptr, ptr, ptr"),
    "PyObject_Vectorcall": ("ptr", "ptr, ptr, i64, ptr"),
    "PyObject_VectorcallMethod": ("ptr", "ptr, ptr, i64, ptr"),
    "PySequence_Tuple": ("ptr", "ptr"),
    "PySlice_AdjustIndices": ("i64", "i64, ptr, ptr, i64"),
    "PySlice_Unpack": ("i32", "ptr, ptr, ptr, ptr"),
    "PyTuple_GetItem": ("ptr", "ptr, i64"),
    "PyTuple_New": ("ptr", "i64"),
    "PyType_GenericAlloc": ("ptr", "ptr, i64"),
    "PyType_IsSubtype": ("i32", "ptr, ptr"),
}


class Function:
    """The IR of one function, written one instruction after the other. `parameters` are as in IR: "ptr %a, i64 %n"."""

    def __init__(
        self, called: str, parameters: str, result: str = "ptr", linkage: str = "", attributes: str = ""
    ):
        self.called, self.parameters, self.result = called, parameters, result
        self.linkage, self.attributes = linkage, attributes
        self.lines: list[str] = []
        self._rooms: list[str] = []
        self._count = 0

    def text(self) -> str:
        head = f"define {self.linkage} {self.result} @{_quoted(self.called)}({self.parameters}) {self.attributes} #0"
        # Each function begins a line of the instruction cache. Else the speed of calls depends on the sizes of the functions before them: with
        # this, operators take 2 to 10 % less, views 4 % less, and indices 5 % more (AMD Zen 5).
        return "\n".join([f"{head} align 64 {{", "start:", *self._rooms, *self.lines, "}"])

    def room(self, words: int) -> str:
        """The address of so many words, which are the function's own while it runs."""
        self._rooms.append(f"%room{len(self._rooms)} = alloca [{words} x i64], align 16")
        return f"%room{len(self._rooms) - 1}"

    def do(self, instruction: str) -> None:
        self.lines.append(instruction)

    def let(self, instruction: str) -> str:
        """Return the name of the result of an instruction."""
        self._count += 1
        self.do(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def number(self) -> int:
        """A number that no other label or result of this function has."""
        self._count += 1
        return self._count

    def call(self, function: str, *arguments: str) -> str:
        """Call a function of CPython; returns the name of its result."""
        kind, kinds = _API[function]
        given = ", ".join(f"{k} {a}" for k, a in zip(filter(None, kinds.split(", ")), arguments, strict=True))
        if kind == "void":
            self.do(f"call void @{function}({given})")
            return ""
        return self.let(f"call {kind} @{function}({given})")

    def place(self, base: str, offset: int | str) -> str:
        """The address that lies `offset` bytes after `base`."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, base: str, offset: int | str = 0, kind: str = "ptr") -> str:
        return self.let(f"load {kind}, ptr {self.place(base, offset)}")

    def store(self, base: str, offset: int | str, value: str, kind: str = "ptr") -> None:
        self.do(f"store {kind} {value}, ptr {self.place(base, offset)}")

    def type_of(self, value: str) -> str:
        return self.load(value, TYPE)

    def is_plain(self, value: str) -> str:
        """Whether the class of an object is one of `core.tensor.plain_types`."""
        kind = self.type_of(value)
        parameter = self.same(kind, self.load(name("other_plain_type")))
        return self.let(f"or i1 {self.same(kind, name('tensor'))}, {parameter}")

    def same(self, one: str, other: str, kind: str = "ptr") -> str:
        return self.let(f"icmp eq {kind} {one}, {other}")

    def differ(self, one: str, other: str, kind: str = "ptr") -> str:
        return self.let(f"icmp ne {kind} {one}, {other}")

    def incref(self, value: str) -> None:
        self.call("Py_IncRef", value)

    def decref(self, value: str) -> None:
        self.call("Py_DecRef", value)

    def label(self, name: str) -> None:
        self.do(f"{name}:")

    def go(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}")

    def require(self, condition: str, otherwise: str) -> None:
        """Go on if the condition holds, else at the label `otherwise`."""
        n = self.number()
        self.branch(condition, f"go{n}", otherwise)
        self.label(f"go{n}")

    def ret(self, value: str = "") -> None:
        self.do(f"ret {self.result} {value}")

    # -- tuples and lists: by CPython's functions where other threads may change a list at the same time

    def tuple_item(self, value: str, position: int, kind: str = "ptr") -> str:
        return self.load(value, TUPLE_ITEMS + 8 * position, kind)

    def list_size(self, value: str) -> str:
        return self.call("PyList_Size", value) if FREE_THREADED else self.load(value, SIZE, "i64")

    def list_pop(self, value: str) -> str:
        """The last item of a list that had items a moment ago; null if it is empty, which sets an error."""
        if FREE_THREADED:
            room = self.room(1)
            self.store(room, 0, value)
            return self.call("PyObject_VectorcallMethod", name("pop"), room, "1", "null")
        size = self.let(f"sub i64 {self.list_size(value)}, 1")
        self.store(value, SIZE, size, "i64")
        scaled = self.let(f"mul i64 {size}, 8")
        return self.load(self.load(value, LIST_ITEMS), scaled)

    def list_append(self, value: str, item: str) -> str:
        """Append to a list; not 0 after an error."""
        return self.call("PyList_Append", value, item)

    def python(self, function: str, *arguments: str) -> str:
        """Call a Python object with these arguments; the result is null if it raised."""
        room = self.room(len(arguments) + 1)
        for k, argument in enumerate(arguments, 1):
            self.store(room, 8 * k, argument)
        # The flag PY_VECTORCALL_ARGUMENTS_OFFSET says that the callee may use the word before the arguments.
        count = len(arguments) - (1 << 63)
        return self.call("PyObject_Vectorcall", function, self.place(room, 8), str(count), "null")


class Text(Function):
    """Writes a function with loops, and with arrays of words."""

    def __init__(self, called: str, parameters: str, result: str = "ptr", linkage: str = "internal"):
        super().__init__(called, parameters, result, linkage)
        self._loops = itertools.count()

    @contextlib.contextmanager
    def each(self, count: str) -> Iterator[str]:
        """A loop; its value is the index, from 0 to `count`, which is an i64."""
        k, place = next(self._loops), self.room(1)
        self.store(place, 0, "0", "i64")
        self.go(f"head{k}")
        self.label(f"head{k}")
        index = self.load(place, 0, "i64")
        self.branch(self.let(f"icmp slt i64 {index}, {count}"), f"body{k}", f"end{k}")
        self.label(f"body{k}")
        yield index
        self.store(place, 0, self.add(self.load(place, 0, "i64"), "1"), "i64")
        self.go(f"head{k}")
        self.label(f"end{k}")

    def add(self, a: str, b: str) -> str:
        return self.let(f"add i64 {a}, {b}")

    def word(self, base: str, index: str | int, kind: str = "i64") -> str:
        """Return the word of an array."""
        return self.load(base, self.let(f"mul i64 {index}, 8"), kind)

    def set_word(self, base: str, index: str | int, value: str, kind: str = "i64") -> None:
        self.store(base, self.let(f"mul i64 {index}, 8"), value, kind)

    def address(self, value: str) -> str:
        return self.let(f"ptrtoint ptr {value} to i64")

    def pointer(self, value: str) -> str:
        return self.let(f"inttoptr i64 {value} to ptr")

    def ask(self, called: str, arguments: str, otherwise: str) -> None:
        """Call a function that answers whether it was successful; go to `otherwise` if not."""
        self.require(self.let(f"call i1 @{called}({arguments})"), otherwise)


class References:
    """References that a function owns until its end, at most `room` of them. The label `failed` is where it goes on after an error."""

    def __init__(self, f: Text, room: int):
        self.f = f
        self._values, self._count = f.room(room), f.room(1)

    def begin(self) -> None:
        """Own nothing yet."""
        self.f.store(self._count, 0, "0", "i64")

    def own(self, value: str) -> str:
        """Take over the reference that a function of CPython returned; null means an error."""
        f = self.f
        f.require(f.differ(value, "null"), "failed")
        k = f.load(self._count, 0, "i64")
        f.set_word(self._values, k, value, "ptr")
        f.store(self._count, 0, f.add(k, "1"), "i64")
        return value

    def drop(self) -> None:
        """Give all of them back."""
        f = self.f
        with f.each(f.load(self._count, 0, "i64")) as k:
            f.decref(f.word(self._values, k, "ptr"))


def compile_functions(functions: Iterable[Function | str], *names: str) -> tuple[int, ...]:
    """The addresses of these functions, which are compiled as one module."""
    return tiers.compile_ir(module_ir(functions), *names)


def module_ir(functions: Iterable[Function | str]) -> str:
    """Return the IR of a module with these functions (or texts), and declarations of all that they refer to."""
    text = "\n".join(each if isinstance(each, str) else each.text() for each in functions)
    objects = sorted(set(re.findall(r'@"weft\.[^"]+"', text)))
    defined = set(re.findall(r'define [^@]*(@"[^"]+")', text))
    used = sorted(set(re.findall(r"@(Py\w+)", text)))
    return "\n".join(
        [
            *(f"{each} = external global i8" for each in objects if each not in defined),
            *(f"declare {_API[each][0]} @{each}({_API[each][1]})" for each in used),
            text,
            "",
        ]
    )


def _quoted(name: str) -> str:
    return f'"{name}"' if "." in name else name


def layout_is_known() -> bool:
    """Whether lists, tuples, bytes and the operators of classes lie in memory as this file says."""
    if FREE_THREADED or sys.implementation.name != "cpython":
        return False

    def word(address: int) -> int:
        return ctypes.c_size_t.from_address(address).value

    item, probe = object(), type("Probe", (), {"__add__": lambda a, b: None})
    plain, equal = type("Plain", (), {}), type("Equal", (), {"__eq__": lambda a, b: True})
    getter = type("Getter", (property,), {})
    asking = type("Asking", (), {"__getattr__": lambda self, key: key})
    values, pair, data = [item, item], (item, None), b"weft"
    return (
        word(id(item) + TYPE) == id(object)
        and word(id(values) + SIZE) == 2 <= word(id(values) + LIST_ROOM)
        and word(word(id(values) + LIST_ITEMS) + 8) == id(item)
        and (word(id(pair) + SIZE), word(id(pair) + TUPLE_ITEMS)) == (2, id(item))
        and ctypes.string_at(id(data) + BYTES) == data
        and slot(probe, "nb_add") != 0
        and not any(slot(probe, each) for each in NUMBER_SLOTS if each != "nb_add")
        and slot(plain, "tp_richcompare") == slot(probe, "tp_richcompare") != slot(equal, "tp_richcompare")
        and slot(plain, "tp_getattro") == slot(probe, "tp_getattro") != slot(asking, "tp_getattro")
        and slot(getter, "tp_descr_get") == slot(property, "tp_descr_get") != slot(probe, "tp_descr_get") == 0
    )


# ---- The operators of classes ----------------------------------------------------------------------------------------------

# The fields of PyNumberMethods, in their order.
NUMBER_SLOTS = tuple(
    "nb_add nb_subtract nb_multiply nb_remainder nb_divmod nb_power nb_negative nb_positive nb_absolute nb_bool nb_invert "
    "nb_lshift nb_rshift nb_and nb_xor nb_or nb_int nb_reserved nb_float nb_inplace_add nb_inplace_subtract "
    "nb_inplace_multiply nb_inplace_remainder nb_inplace_power nb_inplace_lshift nb_inplace_rshift nb_inplace_and "
    "nb_inplace_xor nb_inplace_or nb_floor_divide nb_true_divide nb_inplace_floor_divide nb_inplace_true_divide nb_index "
    "nb_matrix_multiply nb_inplace_matrix_multiply".split()
)


# Of PyTypeObject.
_FIELDS = {"tp_getattro": SIZE + 128, "tp_richcompare": SIZE + 184, "tp_descr_get": SIZE + 256}


def _slot_field(cls: type, slot: str) -> Any:
    if slot in _FIELDS:
        return ctypes.c_size_t.from_address(id(cls) + _FIELDS[slot])
    if slot == "mp_subscript":
        # This slot is PyTypeObject.tp_as_mapping.
        mapping = ctypes.c_size_t.from_address(id(cls) + NUMBER_METHODS + 16).value
        return ctypes.c_size_t.from_address(mapping + 8)
    methods = ctypes.c_size_t.from_address(id(cls) + NUMBER_METHODS).value
    return ctypes.c_size_t.from_address(methods + 8 * NUMBER_SLOTS.index(slot))


def slot(cls: type, called: str) -> int:
    """The C function behind an operator of a class that Python code defines; 0 for none."""
    return _slot_field(cls, called).value


def set_slot(cls: type, called: str, address: int) -> None:
    _slot_field(cls, called).value = address
