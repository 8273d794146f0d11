"""Runs the bytecode of a function, on copies of its tensors, and notes what the function depends on.

The interpreter executes the instructions of CPython with ordinary objects. It calls the functions of weft that compute on tensors,
follows calls of other Python functions into their bytecode, and calls built-in functions that are known to be pure. What the
function reads from outside (global and closed-over variables, attributes, items) becomes a guard: a condition under which
a record of this run holds. What the function does to the outside (an attribute is set, a list grows, something is printed)
raises Unsupported before it is done. So a run that ends has changed nothing but the copies.
"""

from __future__ import annotations

import dis
import functools
import itertools
import math
import operator
import struct
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from typing import Any, NamedTuple

import numpy as np

from .. import autograd
from ..core.code_exchange import own_code
from ..core.device import device
from ..core.dtype import DType
from ..core.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from ..core.layout import Layout, MemoryFormat
from ..core.registry import FUNCTIONS
from ..core.size import Size
from ..core.tensor import Tensor
from ..engine.objects import FREE_THREADED
from ..nn.hooks import any_global
from ..nn.module import Module
from ._tape import GraphBreak, Unsupported

# Bytecode differs from version to version. Other versions run functions as they are, and so do free-threaded builds.
IS_KNOWN = (
    sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13) and not FREE_THREADED
)
MOST_INSTRUCTIONS = 1_000_000
MOST_DEPTH = 60  # of calls

_NULL: Any = type("Null", (), {"__repr__": lambda self: "NULL"})()
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "MISSING"})()


class Guard(NamedTuple):
    """A condition of a record: `get(owner, name)` still gives `value`, see `holds`."""

    kind: str  # "item", "attribute", "class", "cell", "length" or "items"
    owner: Any
    name: Any
    value: Any

    def holds(self) -> bool:
        """Whether what was read has not changed."""
        return self.kind == "items" and _same_items(self.owner, self.value) or self.same(self.read())

    def read(self) -> Any:
        if self.kind == "item":
            return self.owner.get(self.name, MISSING)
        if self.kind == "attribute":
            return getattr(self.owner, self.name, MISSING)
        if self.kind == "class":
            return vars(self.owner).get(self.name, MISSING)
        if self.kind == "length":
            return len(self.owner)
        return self.owner.cell_contents if self.kind == "cell" else MISSING

    def same(self, found: Any) -> bool:
        return (
            found is self.value
            or type(found) is type(self.value) in VALUES
            and found == self.value
            and (type(found) not in (float, complex) or bits(found) == bits(self.value))
        )


def bits(value: complex) -> bytes:
    return struct.pack("2d", value.real, value.imag)


def _items(container: Any) -> tuple:
    return tuple(container.items()) if isinstance(container, dict) else tuple(container)


def _same_items(container: Any, before: tuple) -> bool:
    """Whether a list or a dictionary has the same objects as items as before."""
    now = _items(container)
    if len(now) != len(before):
        return False
    if isinstance(container, dict):
        return all(a[0] == b[0] and a[1] is b[1] for a, b in zip(now, before, strict=True))
    return all(a is b for a, b in zip(now, before, strict=True))


# Types whose values are compared by `==`, and whose operations have no effects.
VALUES = (bool, int, float, complex, str, bytes, type(None))
_PURE = (*VALUES, Size, slice, range, DType, device, Layout, MemoryFormat, type(...), type(NotImplemented))
_CONTAINERS = (list, dict, set, OrderedDict)
_READERS = {
    "values",
    "items",
    "keys",
    "get",
    "index",
    "count",
    "copy",
    "__len__",
    "__getitem__",
    "__contains__",
}
_PURE_FUNCTIONS = {
    len, range, isinstance, issubclass, int, float, bool, str, complex, abs, min, max, sum, round, divmod, pow, zip, enumerate,
    reversed, tuple, list, dict, set, frozenset, slice, type, callable, id, all, any, sorted, ord, chr, repr, iter, next,
    OrderedDict, Size,
    *(each for each in vars(math).values() if callable(each)),
    operator.neg, operator.pos, operator.abs, operator.invert, operator.not_, operator.truth, operator.index,
}  # fmt: skip
_PURE_FUNCTIONS -= {id, next}  # an id differs from call to call; `next` is handled with its iterator
# Methods of containers that neither compare nor call the items.
_KEEPING = {
    "append",
    "insert",
    "get",
    "pop",
    "popitem",
    "setdefault",
    "clear",
    "reverse",
    "__getitem__",
    "__setitem__",
    "__len__",
}
_VIEWING = {"copy", "keys", "values", "items"}
_SWITCHES = (no_grad, enable_grad, set_grad_enabled)
_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift,
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip
_COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS = {function: symbol for symbol, function in _BINARY.items() if symbol[-1] != "="}
_COMPARISONS = {function: symbol for symbol, function in _COMPARE.items()}
_SEQUENCES = (tuple, list, dict, OrderedDict, set, str, range, bytes, Size)
# Attributes of tensors that a function may set.
_WRITABLE = ("grad",)
# Attributes in which a copy differs from its tensor.
_HIDDEN = {"grad_fn", "is_leaf", "output_nr", "retains_grad", "_base", "_version", "_storage", "_byte_offset", "_autograd", "__dict__",
           "storage_offset", "is_inference", "_is_view", "is_shared", "is_pinned", "is_set_to", "__hash__", "__sizeof__", "names"}  # fmt: skip
# Functions of weft that do more than to compute on their arguments.
_REFUSED = {"requires_grad_", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "share_memory_", "set_",
            "numpy", "data_ptr", "__array__", "__dlpack__", "__reduce__", "__reduce_ex__", "__deepcopy__", "to_dense", "from_numpy",
            "as_tensor", "asarray", "frombuffer", "from_dlpack", "untyped_storage", "storage", "typed_storage", "manual_seed",
            "get_rng_state", "set_rng_state", "initial_seed", "get_num_threads", "get_num_interop_threads", "is_inference", "is_storage",
            "set_default_dtype", "set_default_tensor_type", "set_default_device", "set_num_threads", "set_printoptions", "save", "load", "seed"}  # fmt: skip

_READING = {
    "item",
    "tolist",
    "__bool__",
    "__float__",
    "__int__",
    "__index__",
    "__complex__",
    "equal",
    "allclose",
    "is_nonzero",
}


@functools.cache
def _public_functions() -> set[int]:
    """The ids of the functions that compute on tensors, which are called as they are."""
    members = [each for each in vars(Tensor).values() if isinstance(each, types.FunctionType)]
    more = [autograd.grad, autograd.backward, is_grad_enabled]
    return {id(each) for each in (*FUNCTIONS.values(), *members, *more)}


class Frame:
    """One call: its code, variables, and stack.

    `variables` has a place for each local variable, in the order of CPython's frames: parameters and other local variables, those that only
    inner functions share, and those of enclosing functions. The last two kinds are cells. A variable without a value is NULL.
    """

    __slots__ = ("code", "globals", "variables", "stack", "names")

    def __init__(
        self, code: types.CodeType, namespace: dict[str, Any], local: dict[str, Any], closure: tuple
    ):
        self.code, self.globals = code, namespace
        own = dict.fromkeys((*code.co_varnames, *code.co_cellvars))
        self.variables: list[Any] = [*(local.get(name, _NULL) for name in own), *closure]
        self.stack: list[Any] = []
        self.names: tuple[str, ...] = ()


@functools.lru_cache(maxsize=256)
def _instructions(code: types.CodeType) -> tuple[list[dis.Instruction], dict[int, int]]:
    """The instructions of a code, and the position of each by its offset."""
    found = list(dis.get_instructions(code))
    return found, {each.offset: k for k, each in enumerate(found)}


# For each instruction a function (interpreter, frame, instruction) -> the offset to jump to, or None. `_instructions.py` and the
# files for newer versions fill it.
HANDLERS: dict[str, Callable[[Interpreter, Frame, dis.Instruction], int | None]] = {}


class Interpreter:
    """One run of a function. `wrap(tensor)` gives the copy that stands for a tensor from outside."""

    def __init__(self, wrap: Callable[[Tensor], Tensor], check: Callable[[], None]):
        self.wrap_tensor = wrap
        self.check = check  # raises Unsupported if the tape has failed
        self.guards: dict[tuple, Guard] = {}
        self.own: dict[int, Any] = {}  # objects that this run has made, which it may change
        self.read_only: dict[int, Any] = {}  # containers that stand for arguments; they need no guards
        self.gradients_read: set[int] = set()  # ids of tensors whose `.grad` the function reads
        self.compares_tensors = False  # whether an `is` between two tensors was answered
        self.count = 0
        self.depth = 0

    # -- what comes from outside ---------------------------------------------------------------------------------------

    def guard(self, kind: str, owner: Any, name: Any, value: Any) -> None:
        self.guards.setdefault((kind, id(owner), name), Guard(kind, owner, name, value))

    def outside(self, value: Any) -> Any:
        """A value that was read from outside, with copies in place of tensors."""
        if isinstance(value, Tensor):
            return self.wrap_tensor(value)
        if type(value) is tuple:
            found = tuple([self.outside(each) for each in value])
            return value if all(a is b for a, b in zip(found, value, strict=True)) else found
        if isinstance(value, tuple) and not all(map(_is_simple, value)):
            raise Unsupported(f"a {type(value).__name__} from outside is used")
        if type(value) is slice and not _is_simple((value.start, value.stop, value.step)):
            raise Unsupported("a slice of unusual objects is used")
        if isinstance(value, (np.ndarray, np.generic)):
            raise Unsupported("an array of NumPy is used")
        return value

    def items(self, container: Any) -> Any:
        """The items of a list, dictionary or set, as a container that may be read without guards."""
        if id(container) in self.own or id(container) in self.read_only or type(container) not in _CONTAINERS:
            return container
        if type(container) is set:
            raise Unsupported("a set from outside is read")
        before = _items(container)
        self.guard("items", container, None, before)
        found: Any
        if isinstance(container, dict):
            found = {key: self.outside(value) for key, value in before}
        else:
            found = [self.outside(value) for value in before]
        self.read_only[id(found)] = found
        return found

    def is_plain(self, value: Any) -> bool:
        """Whether comparisons of the value neither run Python code nor read tensors. The items of lists from outside become guards."""
        if type(value) in (tuple, frozenset):
            return all(map(self.is_plain, value))
        if type(value) in _CONTAINERS:
            found = self.items(value)
            return all(map(self.is_plain, found)) and (
                not isinstance(found, dict) or all(map(self.is_plain, found.values()))
            )
        return _is_simple(value)

    def keep(self, value: Any) -> Any:
        """An object that this run has just made, and that nothing outside refers to."""
        if not isinstance(value, Tensor) and type(value) not in _PURE:
            self.own[id(value)] = value
        return value

    def truth(self, value: Any) -> bool:
        if isinstance(value, Tensor):
            raise GraphBreak("a branch depends on the value of a tensor")
        if type(value) in _PURE or type(value) is tuple:
            return bool(value)
        if type(value) in _CONTAINERS:
            if id(value) not in self.own and id(value) not in self.read_only:
                self.guard("length", value, None, len(value))
            return bool(value)
        kind = type(value)
        if (
            isinstance(value, Module)
            and not hasattr(kind, "__len__")
            or isinstance(value, type | types.FunctionType | types.MethodType)
        ):
            return True
        if hasattr(kind, "__bool__") or hasattr(kind, "__len__"):
            raise Unsupported(f"a branch depends on an object of class {kind.__name__}")
        return True

    # -- attributes ----------------------------------------------------------------------------------------------------

    def attribute(self, owner: Any, name: str) -> Any:
        kind = type(owner)
        if isinstance(owner, Tensor):
            if name in owner.__dict__ and name != "grad" or not hasattr(kind, name):
                raise Unsupported(f"the attribute {name} of a tensor is read")
            if name in _HIDDEN:
                raise Unsupported(f"the attribute {name} of a tensor is read")
            if name == "grad":
                self.gradients_read.add(id(owner))
            if isinstance(getattr(kind, name), types.FunctionType):
                return types.MethodType(getattr(kind, name), owner)
            return self.keep(getattr(owner, name))
        if isinstance(owner, types.ModuleType):
            if name not in vars(owner) and not _is_own(owner.__name__):
                raise Unsupported(f"the module {owner.__name__} computes {name}")
            return self.variable(vars(owner), name, getattr(owner, name, MISSING))
        if kind in _PURE or kind is tuple or kind in _CONTAINERS or id(owner) in self.own:
            return self.made_member(owner, name)
        if isinstance(owner, type):
            found = getattr(owner, name, MISSING)
            if isinstance(found, types.MethodType):  # a new object at each access
                self.guard_class(owner, name)
                return found
            return self.read("attribute", owner, name, found)
        if isinstance(
            owner, (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
        ):
            return self.read("attribute", owner, name, getattr(owner, name, MISSING))
        return self.member(owner, name)

    def made_member(self, owner: Any, name: str) -> Any:
        """An attribute of an object of a built-in class, or of one that this run has made."""
        if isinstance(getattr(type(owner), name, None), property) and not _is_own(type(owner).__module__):
            raise Unsupported(f"the attribute {name} of {type(owner).__name__} is computed")
        if not hasattr(owner, name):
            raise Unsupported(f"{type(owner).__name__} has no attribute {name}")
        return getattr(owner, name)

    def variable(self, namespace: dict[str, Any], name: str, found: Any) -> Any:
        """A variable of a module."""
        if found is MISSING:
            raise Unsupported(f"the name {name} is not defined")
        if name not in namespace:  # a module that is loaded when it is first asked for
            return self.outside(found)
        if _is_own(namespace.get("__name__", "")) and not isinstance(found, (*VALUES, *_CONTAINERS, Tensor)):
            return found
        return self.read("item", namespace, name, found)

    def read(self, kind: str, owner: Any, name: Any, found: Any) -> Any:
        if found is MISSING:
            raise Unsupported(f"{name} is not defined")
        self.guard(kind, owner, name, found)
        return self.outside(found)

    def member(self, owner: Any, name: str) -> Any:
        """An attribute of an object from outside."""
        kind = type(owner)
        getter = getattr(kind, "__getattr__", None)
        if "_orig_mod" in getattr(owner, "_modules", ()):  # torch.compile has made it of a module
            return self.attribute(owner._modules["_orig_mod"], name)
        if kind.__getattribute__ is not object.__getattribute__ or getter not in (None, Module.__getattr__):
            raise Unsupported(f"the class {kind.__name__} computes its attributes")
        if not _is_own(kind.__module__):
            self.guard("attribute", owner, "__class__", kind)
        raw = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), MISSING)
        if isinstance(raw, property):
            self.guard_class(kind, name)
            return self.call(raw.fget, (owner,), {})
        own = getattr(owner, "__dict__", {})
        if name in own:
            if hasattr(type(raw), "__set__"):
                raise Unsupported(f"the attribute {name} of {kind.__name__} is computed")
            return self.read("item", own, name, own[name])
        if raw is MISSING:
            for place in ("_parameters", "_modules", "_buffers") if isinstance(owner, Module) else ():
                if name in own[place]:
                    self.guard("item", own, place, own[place])
                    return self.read("item", own[place], name, own[place][name])
            raise Unsupported(f"{kind.__name__} has no attribute {name}")
        if isinstance(raw, types.MemberDescriptorType):
            return self.read("attribute", owner, name, getattr(owner, name, MISSING))
        self.guard_class(kind, name)
        if hasattr(owner, "__dict__"):
            self.guard("item", own, name, MISSING)  # an attribute of the object would hide that of the class
        if isinstance(raw, types.FunctionType):
            return types.MethodType(raw, owner)
        if isinstance(raw, staticmethod):
            return raw.__func__
        if isinstance(raw, classmethod):
            return types.MethodType(raw.__func__, kind)
        if hasattr(type(raw), "__get__"):
            raise Unsupported(f"the attribute {name} of {kind.__name__} is computed")
        return self.outside(raw)

    def guard_class(self, kind: type, name: str) -> None:
        for each in kind.__mro__:
            if _is_own(each.__module__):
                return
            found = vars(each).get(name, MISSING)
            self.guard("class", each, name, found)
            if found is not MISSING:
                return

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(owner, Tensor) and name in _WRITABLE:
            setattr(owner, name, value)
        else:
            raise Unsupported(f"the attribute {name} of {type(owner).__name__} is set")

    # -- calls ---------------------------------------------------------------------------------------------------------

    def call(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(function, types.MethodType):
            return self.call(function.__func__, (function.__self__, *args), kwargs)
        if isinstance(function, types.FunctionType):
            if id(function) in _public_functions():
                return self.public(function, args, kwargs)
            if getattr(function, "_torchdynamo_disable", False):
                raise GraphBreak(f"{function.__qualname__} is marked by torch.compiler.disable")
            inner = getattr(function, "_torchdynamo_orig_callable", None)
            return self.python(function, args, kwargs) if inner is None else self.call(inner, args, kwargs)
        if isinstance(function, functools.partial) and type(function) is functools.partial:
            first = tuple(map(self.outside, function.args))
            return self.call(function.func, (*first, *args), {**self.items(function.keywords), **kwargs})
        if isinstance(function, (types.BuiltinFunctionType, types.MethodWrapperType)):
            return self.builtin(function, args, kwargs)
        if isinstance(function, type):
            return self.construct(function, args, kwargs)
        if isinstance(function, Module):
            return self.module(function, args, kwargs)
        if hasattr(type(function), "_torchdynamo_orig_callable") or "_torchdynamo_orig_callable" in getattr(
            function, "__dict__", {}
        ):
            return self.call(function._torchdynamo_orig_callable, args, kwargs)
        found = vars(type(function)).get("__call__")
        if isinstance(found, types.FunctionType):
            self.guard_class(type(function), "__call__")
            self.guard("attribute", function, "__class__", type(function))
            return self.call(found, (function, *args), kwargs)
        if (
            isinstance(function, types.MethodDescriptorType)
            and args
            and type(args[0]) in (*_PURE, *_CONTAINERS, tuple)
        ):
            return self.call(getattr(args[0], function.__name__), args[1:], kwargs)
        raise Unsupported(f"{_name(function)} is called")

    def public(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function of weft."""
        if function.__name__ in _READING:
            raise GraphBreak(f"{function.__name__} reads the value of a tensor")
        if function.__name__ in _REFUSED or function.__name__ in _HIDDEN:
            raise Unsupported(f"{function.__name__} is called")
        if function.__name__.startswith("as_strided") and (len(args) > 3 or "storage_offset" in kwargs):
            raise Unsupported(
                "as_strided is called with an offset, which counts from the begin of the memory"
            )
        args = tuple([self.argument(each) for each in args])
        kwargs = {name: self.argument(each) for name, each in kwargs.items()}
        result = self.attempt(function, args, kwargs)
        if isinstance(result, tuple):
            for each in result:
                self.keep(each)
        return self.keep(result)

    def attempt(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function. An error ends the recording, and the function itself raises it."""
        try:
            result = function(*args, **kwargs)
        except Unsupported:
            raise
        except Exception as error:
            self.check()
            raise Unsupported(f"{_name(function)} raises {type(error).__name__}: {error}") from error
        self.check()
        return result

    def argument(self, value: Any) -> Any:
        """An argument for a function that is called as it is."""
        if type(value) in (list, dict, OrderedDict):
            found = self.items(value)
            return (
                {k: self.argument(v) for k, v in found.items()}
                if isinstance(found, dict)
                else list(map(self.argument, found))
            )
        if type(value) is tuple:
            return tuple(map(self.argument, value))
        if (
            isinstance(value, (Tensor, type))
            or type(value) in _PURE
            or isinstance(value, tuple)
            and id(value) in self.own
        ):
            return value
        raise Unsupported(f"an object of class {type(value).__name__} is passed to a function")

    def builtin(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        owner = getattr(function, "__self__", None)
        if function is next and len(args) == 1 and id(args[0]) in self.own:
            try:
                return next(args[0])
            except StopIteration:
                raise Unsupported("next() reached the end") from None
        if function is getattr and len(args) in (2, 3) and not kwargs:
            return self.attribute(args[0], args[1]) if len(args) == 2 else self._with_default(*args)
        if function in _PURE_FUNCTIONS:
            return self.pure(function, args, kwargs)
        if len(args) == 2 and not kwargs:
            if function in _OPERATORS:
                return self.binary(_OPERATORS[function], *args)
            if function in _COMPARISONS:
                return self.compare(_COMPARISONS[function], *args)
            if function is operator.getitem:
                return self.subscript(*args)
        if type(owner) in (*_PURE, tuple):
            if not all(map(self.is_plain, (owner, *args, *kwargs.values()))):
                raise Unsupported(f"{_name(function)} of unusual objects is called")
            return self.keep(self.attempt(function, args, kwargs))
        if type(owner) in _CONTAINERS and (id(owner) in self.own or function.__name__ in _READERS):
            return self.container_method(self.items(owner), function.__name__, args, kwargs)
        raise (GraphBreak if function is print else Unsupported)(f"{_name(function)} is called")

    def container_method(self, owner: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a method of a list, dictionary or set that this run has made, or one that only reads."""
        function = getattr(owner, name)
        if name in _KEEPING and not (isinstance(owner, dict) and args and not self.is_plain(args[0])):
            return self.attempt(function, args, kwargs)
        if name in _VIEWING:
            return self.keep(self.attempt(function, args, kwargs))
        if name in ("extend", "update") and type(owner) is not set:
            return self.attempt(function, tuple(map(self.iterable, args)), kwargs)
        if not all(map(self.is_plain, (owner, *args, *kwargs.values()))):
            raise Unsupported(f"the method {name} compares unusual objects, or calls a function")
        return self.keep(self.attempt(function, args, kwargs))

    def _with_default(self, owner: Any, name: str, default: Any) -> Any:
        if isinstance(owner, Tensor) or type(owner) in _PURE or id(owner) in self.own:
            return self.attribute(owner, name) if hasattr(owner, name) else default
        raise Unsupported("getattr with a default is called")

    def pure(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if function is isinstance:
            return isinstance(*args)
        if function is type and len(args) == 1:
            return type(args[0])
        if function is type or function is iter and len(args) > 1:
            raise Unsupported(f"{_name(function)} with {len(args)} arguments is called")
        if function is callable:
            return callable(*args)
        if function is len and isinstance(args[0], Module):
            return self.call(_method(args[0], "__len__"), args, {})
        if function is sum and len(args) <= 2 and not kwargs:
            return self.sum(list(self.iterate(args[0])), *args[1:])
        if function in (iter, enumerate, reversed, zip, list, tuple, set, sorted) and args:
            count = len(args) if function is zip else 1
            args = (*(self.iterable(each) for each in args[:count]), *args[count:])
        if "key" in kwargs:
            raise Unsupported(f"{_name(function)} with a key is called")
        args = tuple([self.items(each) for each in args])
        for each in args:
            if (
                not (isinstance(each, (Tensor, type)) or type(each) in (*_PURE, *_CONTAINERS, tuple))
                and id(each) not in self.own
            ):
                raise Unsupported(f"{_name(function)} of an object of class {type(each).__name__} is called")
            if isinstance(each, Tensor) and function in (
                int,
                float,
                bool,
                complex,
                str,
                repr,
                min,
                max,
                round,
                all,
                any,
                sorted,
            ):
                raise GraphBreak(f"{_name(function)} reads the value of a tensor")
            if isinstance(each, Tensor) and function in (list, tuple, zip, enumerate, iter, reversed, set):
                raise Unsupported("a tensor is iterated over")
            if function in (str, repr, sorted, min, max, all, any, set, dict) and not self.is_plain(each):
                raise Unsupported(f"{_name(function)} of unusual objects is called")
        result = self.attempt(function, args, kwargs)
        return result if function in (min, max) else self.keep(result)

    def sum(self, values: list[Any], start: Any = 0) -> Any:
        # Since CPython 3.12 `sum` corrects the rounding of floats, so the numbers before the first tensor are its own work.
        count = len(list(itertools.takewhile(self.is_plain, [start, *values]))) - 1
        total = self.keep(self.attempt(sum, (values[: max(count, 0)], start), {}))
        for each in values[max(count, 0) :]:
            total = self.binary("+", total, each)
        return total

    def construct(self, cls: type, args: tuple, kwargs: dict[str, Any]) -> Any:
        if cls in _SWITCHES and not kwargs and all(type(each) is bool for each in args):
            return self.keep(cls(*args))
        if cls in _PURE_FUNCTIONS:
            return self.pure(cls, args, kwargs)
        if cls is super:
            raise Unsupported("super() is called")
        raise Unsupported(f"an object of class {cls.__name__} is made")

    def module(self, module: Module, args: tuple, kwargs: dict[str, Any]) -> Any:
        if type(module).__call__ is not Module.__call__:
            return self.call(type(module).__call__, (module, *args), kwargs)
        own = vars(module)
        for place in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
            if own[place]:
                raise Unsupported("a module has hooks")
            self.guard("length", own[place], None, 0)
        if any_global:
            raise Unsupported("all modules have hooks")
        return self.call(self.member(module, "forward"), args, kwargs)

    def python(self, function: types.FunctionType, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run the bytecode of a Python function."""
        code = own_code(function)
        name = function.__qualname__
        if code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
            raise Unsupported(f"{name} is a generator or a coroutine")
        if id(function) not in self.own and not _is_own(function.__module__ or ""):
            self.guard("attribute", function, "__code__", function.__code__)
            if function.__defaults__:
                self.guard("attribute", function, "__defaults__", function.__defaults__)
            if function.__kwdefaults__:
                self.guard("attribute", function, "__kwdefaults__", function.__kwdefaults__)
        if self.depth >= MOST_DEPTH:
            raise Unsupported("calls are nested too deeply")
        local = self.bind(function, code, args, kwargs)
        frame = Frame(code, function.__globals__, local, function.__closure__ or ())
        self.depth += 1
        try:
            return self.run(frame)
        finally:
            self.depth -= 1

    def bind(
        self, function: types.FunctionType, code: types.CodeType, args: tuple, kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The values of the parameters."""
        count, names = code.co_argcount, code.co_varnames
        found: dict[str, Any] = dict(zip(names[:count], args))
        rest = count + code.co_kwonlyargcount
        if code.co_flags & CO_VARARGS:
            found[names[rest]] = tuple(args[count:])
        elif len(args) > count:
            raise Unsupported(f"{function.__qualname__} gets too many arguments")
        given = dict(kwargs)
        for name in names[code.co_posonlyargcount : rest]:
            if name in given:
                if name in found:
                    raise Unsupported(f"{function.__qualname__} gets {name} twice")
                found[name] = given.pop(name)
        if code.co_flags & CO_VARKEYWORDS:
            place = rest + bool(code.co_flags & CO_VARARGS)
            found[names[place]] = self.keep(given)
        elif given:
            raise Unsupported(f"{function.__qualname__} gets unknown arguments")
        is_own = id(function) in self.own
        defaults = function.__defaults__ or ()
        for name, value in zip(names[count - len(defaults) : count], defaults, strict=True):
            if name not in found:
                found[name] = value if is_own else self.outside(value)
        for name in names[count:rest]:
            named = function.__kwdefaults__ or {}
            if name not in found and name in named:
                found[name] = named[name] if is_own else self.read("item", named, name, named[name])
        if any(name not in found for name in names[:rest]):
            raise Unsupported(f"{function.__qualname__} lacks an argument")
        return found

    # -- operators -----------------------------------------------------------------------------------------------------

    def binary(self, symbol: str, a: Any, b: Any) -> Any:
        function = _BINARY[symbol]
        for each in (a, b):
            known = id(each) in self.own or id(each) in self.read_only
            if not (known or isinstance(each, Tensor) or type(each) in _PURE or type(each) is tuple):
                raise Unsupported(f"{symbol} is applied to an object of class {type(each).__name__}")
        if symbol[-1] == "=" and type(a) in _CONTAINERS and id(a) not in self.own:
            raise Unsupported("a list from outside is changed")
        if isinstance(a, type):
            raise Unsupported("types are combined")
        if isinstance(a, str) and not self.is_plain(b):
            raise Unsupported("the text of an unusual object is made")
        return self.operate(function, a, b)

    def operate(self, function: Callable, *operands: Any) -> Any:
        return self.keep(self.attempt(function, operands, {}))

    def compare(self, symbol: str, a: Any, b: Any) -> Any:
        if any(isinstance(each, Tensor) for each in (a, b)):
            return self.operate(_COMPARE[symbol], *map(self.argument, (a, b)))
        if self.is_plain(a) and self.is_plain(b):
            return self.operate(_COMPARE[symbol], a, b)
        raise Unsupported(f"objects of the classes {type(a).__name__} and {type(b).__name__} are compared")

    def contains(self, item: Any, container: Any) -> bool:
        container = self.items(container)
        if isinstance(item, Tensor) or isinstance(container, Tensor):
            raise Unsupported("`in` reads the value of a tensor")
        if self.is_plain(item) and self.is_plain(container):
            return self.attempt(operator.contains, (container, item), {})
        if (
            isinstance(container, (tuple, list))
            and isinstance(item, type)
            and all(isinstance(each, type) for each in container)
        ):
            return item in container
        if type(container) in (dict, OrderedDict) and self.is_plain(item):
            return self.attempt(operator.contains, (container, item), {})
        raise Unsupported("`in` compares unusual objects")

    def subscript(self, owner: Any, index: Any) -> Any:
        if isinstance(owner, Tensor):
            return self.public(Tensor.__getitem__, (owner, index), {})
        if isinstance(owner, Module) and isinstance(
            getattr(type(owner), "__getitem__", None), types.FunctionType
        ):
            return self.call(_method(owner, "__getitem__"), (owner, index), {})
        if (
            type(owner) in (dict, OrderedDict)
            and id(owner) not in self.own
            and id(owner) not in self.read_only
        ):
            if not isinstance(index, (str, int)):
                raise Unsupported("an unusual key is looked up")
            return self.read("item", owner, index, owner.get(index, MISSING))
        owner = self.items(owner)
        if isinstance(index, Tensor):
            raise GraphBreak("an index depends on the value of a tensor")
        if (type(owner) in _SEQUENCES or id(owner) in self.own) and self.is_plain(index):
            found = self.attempt(operator.getitem, (owner, index), {})
            return self.keep(found) if type(index) is slice else found
        raise Unsupported(f"an item of an object of class {type(owner).__name__} is read")

    def set_item(self, owner: Any, index: Any, value: Any) -> None:
        if isinstance(owner, Tensor):
            self.public(Tensor.__setitem__, (owner, index, value), {})
        elif id(owner) in self.own and type(owner) in _CONTAINERS and self.is_plain(index):
            if type(index) is slice:
                value = self.iterable(value)
            self.attempt(operator.setitem, (owner, index, value), {})
        else:
            raise Unsupported(f"an item of an object of class {type(owner).__name__} from outside is set")

    def iterable(self, value: Any) -> Any:
        """The value in a form that may be iterated over by Python."""
        if isinstance(value, Tensor):
            return self.public(_method(value, "unbind"), (value,), {})
        if isinstance(value, Module) and isinstance(
            getattr(type(value), "__iter__", None), types.FunctionType
        ):
            return self.iterable(self.call(_method(value, "__iter__"), (value,), {}))
        value = self.items(value)
        if type(value) in _SEQUENCES or id(value) in self.own:
            return value
        raise Unsupported(f"an object of class {type(value).__name__} is iterated over")

    def iterate(self, value: Any) -> Iterator[Any]:
        return iter(self.iterable(value))

    # -- instructions --------------------------------------------------------------------------------------------------

    def run(self, frame: Frame) -> Any:
        instructions, positions = _instructions(frame.code)
        stack, position = frame.stack, 0
        while True:
            self.count += 1
            if self.count > MOST_INSTRUCTIONS:
                raise Unsupported(f"more than {MOST_INSTRUCTIONS} instructions are run")
            instruction = instructions[position]
            name = instruction.opname
            if name == "RETURN_VALUE":
                return stack.pop()
            if name == "RETURN_CONST":  # CPython 3.12 and 3.13
                return instruction.argval
            handler = HANDLERS.get(name)
            if handler is None:
                raise Unsupported(f"the instruction {name} is used")
            target = handler(self, frame, instruction)
            position = position + 1 if target is None else positions[target]


def _method(owner: Any, name: str) -> Any:
    """The function behind a method."""
    return getattr(type(owner), name)


def _is_own(module: str) -> bool:
    """Whether a module is one of weft's."""
    return module.partition(".")[0] in ("weft", "torch")


def _is_simple(value: Any) -> bool:
    """Whether a value is immutable, and comparisons of it neither run Python code nor read tensors."""
    if type(value) in (tuple, frozenset):
        return all(map(_is_simple, value))
    if type(value) is slice:
        return _is_simple((value.start, value.stop, value.step))
    return type(value) in _PURE or isinstance(value, type)


def _name(function: Any) -> str:
    return (
        getattr(function, "__qualname__", None)
        or getattr(function, "__name__", None)
        or type(function).__name__
    )
