"""`__torch_function__`: classes that have a say when their objects are given to a function or a method.

Two kinds have one: subclasses of Tensor, and other classes that define `__torch_function__`. Plain tensors pay nothing:

- Methods, operators and properties ask in `AskingTensor`, a class that `Tensor.__init_subclass__` puts between Tensor and
  the classes of users.
- Functions ask only if `known` is not empty, and those with a short way for plain tensors only after it. A subclass is
  known from its definition on; an object of any other class when the first call that cannot handle it fails.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable
from types import CellType, FunctionType, NoneType
from typing import Any

from .checking import check_tensors
from .dispatch import PLAIN
from .names import FUNCTIONS
from .restoring import Restoring
from .tensor import Tensor, of_class

# The classes that were seen to have a say. While there are none, nobody is asked.
known: set[type] = set()


class _Switch(threading.local):
    on = True
    skips = False  # whether the next function asks nobody: `torch.overrides.redispatch_function`


switch = _Switch()

# Classes that have none.
_SILENT: set[type] = {Tensor, int, float, bool, complex, str, bytes, slice, type, dict, NoneType}


class DisableTorchFunctionSubclass(Restoring):
    """Nobody is asked inside: subclasses are handled as plain tensors, and so are their results."""

    def __enter__(self) -> None:
        self._outer = switch.on
        switch.on = False

    def _restore(self) -> None:
        switch.on = self._outer


def disabled(func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_function__` of subclasses that have no say, such as Parameter: their results are plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs or {})


def has_say(kind: type) -> bool:
    """Whether objects of this class are to be asked."""
    if kind in _SILENT:
        return False
    answer = getattr(kind, "__torch_function__", None)
    return answer is not None and answer is not disabled


def overriding(values: Iterable[Any]) -> list[Any]:
    """One object of each class that has a say, of the values and of what is in lists among them.

    From left to right, subclasses before their bases.
    """
    found: list[Any] = []
    for value in values:
        for each in value if isinstance(value, (tuple, list)) else (value,):
            kind = type(each)
            if kind not in _SILENT and has_say(kind) and all(type(other) is not kind for other in found):
                later = (place for place, other in enumerate(found) if issubclass(kind, type(other)))
                found.insert(next(later, len(found)), each)
    return found


def meets(values: Iterable[Any]) -> bool:
    """Whether the first objects that have a say are among the values of a call that failed: then it is to be repeated."""
    if known or not switch.on:
        return False
    known.update(map(type, overriding(values)))
    return bool(known)


# Functions that are the inside of a public one -> the public one.
insides: dict[Callable, Callable] = {}


def overridden(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What the classes of the arguments make of the call, PLAIN if none has a say.

    Raises: TypeError if all of them decline.
    """
    if not kwargs and _SILENT.issuperset(map(type, args)) or not switch.on:  # the first because it is fast
        return PLAIN
    if switch.skips:
        switch.skips = False
        return PLAIN
    found = overriding((*args, *kwargs.values()))
    return ask(function, found, args, kwargs) if found else PLAIN


def overridden_operator(operator: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """As `overridden`, for an operator: NotImplemented instead of a TypeError, as in PyTorch."""
    try:
        return overridden(operator, args, kwargs)
    except TypeError:
        return NotImplemented


def declined(operator: Callable, self: Any, other: Any) -> Any:
    """What an operator answers to an operand that it does not know: what the operand's class makes of it."""
    if not (switch.on and has_say(type(other))):
        return NotImplemented
    known.add(type(other))
    return overridden_operator(operator, (self, other), {})


def ask(function: Callable, found: list[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """The first answer of the objects `found` that is not NotImplemented."""
    function = public_function(function)
    types = tuple(map(type, found))
    for each in found:
        handler = each.__torch_function__
        if getattr(handler, "__self__", None) is each:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, "
                "please define it as a classmethod.",
                UserWarning,
                stacklevel=4,
            )
        answer = handler(function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    raise _declined_by_all(function, types)


def public_function(function: Callable) -> Callable:
    """The function or method that handlers hear of when `function` is called."""
    function = insides.get(function, function)
    return _methods_of_operators().get(function, function)


def _declined_by_all(function: Callable, types: tuple[type, ...]) -> TypeError:
    name = full_name(function) or str(getattr(function, "__qualname__", function))
    if not name.startswith("torch.") or name.startswith("torch.nn."):
        return TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}"
        )
    listed = "".join(f"\n  - tensor subclass {kind}" for kind in types)
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n{listed}"
    )


def full_name(function: Callable) -> str | None:
    """`torch.add`, `torch.linalg.norm`, `torch.Tensor.add`, `torch.Tensor.shape.__get__`; None for functions of others."""
    owner = getattr(function, "__self__", None)
    for name, member in vars(Tensor).items():
        if member is function:
            return f"torch.Tensor.{name}"
        if member is owner and isinstance(member, property):
            return f"torch.Tensor.{name}.{function.__name__}"
    return next((f"torch.{name}" for name, each in FUNCTIONS.items() if each is function), None)


def overridable(
    function: Callable, name: str = "", flatten: Callable[[tuple], tuple] | None = None
) -> Callable:
    """`function`, public as `name` or under its own, which asks the classes of its arguments first.

    `flatten` makes the arguments that handlers get of those that were given.
    """

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        if flatten is not None:
            args = flatten(args)
        if known and (answer := overridden(complete, args, kwargs)) is not PLAIN:
            return answer
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if meets((*args, *kwargs.values())):
                return complete(*args, **kwargs)
            if isinstance(error, AttributeError):
                check_tensors(function, name or function.__name__, args, kwargs)
            raise

    return complete


def unasked(function: Callable) -> Callable:
    """`function`, inside of which nobody is asked."""

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        with DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return complete


def twin(function: Callable, own_name: str) -> Callable:
    """A method like `function`, which knows itself as `function` does: handlers tell methods from functions."""
    if not isinstance(function, FunctionType):
        return function
    closure = function.__closure__ or ()
    cells = tuple(CellType() if _holds(cell, function) else cell for cell in closure)
    copy = FunctionType(
        function.__code__, function.__globals__, own_name, function.__defaults__, cells or None
    )
    for new, old in zip(cells, closure, strict=True):
        if new is not old:
            new.cell_contents = copy
    for name in ("__kwdefaults__", "__doc__", "__module__", "__annotations__"):
        setattr(copy, name, getattr(function, name))
    copy.__qualname__ = f"Tensor.{own_name}"
    vars(copy).update(vars(function))
    return copy


# Functions of several namespaces that are one object in PyTorch as well.
_SHARED = frozenset(
    "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity hardshrink pairwise_distance pdist pixel_shuffle pixel_unshuffle "
    "prelu selu_ threshold_".split()
)


def separate_aliases() -> None:
    """Give each public name a function of its own, as in PyTorch: handlers and graphs tell `absolute` from `abs`."""
    seen: set[int] = set()
    for name, function in FUNCTIONS.items():
        own_name = name.rpartition(".")[2]
        if id(function) in seen and isinstance(function, FunctionType) and own_name not in _SHARED:
            FUNCTIONS[name] = (
                alias(function, own_name) if function in insides.values() else twin(function, own_name)
            )
        seen.add(id(function))


def alias(function: Callable, own_name: str) -> Callable:
    """A function that does the same as `function` and asks handlers in its own name."""

    @functools.wraps(function)
    def complete(*args: Any, **kwargs: Any) -> Any:
        if known and (answer := overridden(complete, args, kwargs)) is not PLAIN:
            return answer
        return function(*args, **kwargs)

    complete.__name__ = own_name
    return complete


def _holds(cell: Any, function: Callable) -> bool:
    try:
        return cell.cell_contents is function
    except ValueError:  # not set yet
        return False


# ---- Subclasses of Tensor ---------------------------------------------------------------------------------------------


@functools.cache
def unconverted() -> frozenset[Callable]:
    """The functions whose results stay what they are: `torch.overrides.get_default_nowrap_functions`."""
    return frozenset((Tensor.grad.__get__, vars(Tensor)["_base"].__get__))


def _default(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
    """Call `func` as for plain tensors; its results become objects of this class.

    NotImplemented if an argument is of a class with a say that this is no subclass of.
    """
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs or {})
        return result if func in unconverted() else _converted(result, cls)


def _converted(result: Any, cls: type) -> Any:
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)) and any(isinstance(each, (Tensor, tuple, list)) for each in result):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(_converted(each, cls) for each in result)
    return result


def make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of class `cls` that shares the memory of `data`."""
    if not isinstance(data, Tensor):
        raise TypeError(
            f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}"
        )
    check_subclass(cls)
    if require_grad and not (data.spec.dtype.is_floating_point or data.spec.dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    with DisableTorchFunctionSubclass():
        result = of_class(cls, data.detach())
        result._base = None
        return result.requires_grad_() if require_grad else result


def plain(tensor: Tensor) -> Tensor:
    """The same tensor for those who are not to ask its class."""
    return tensor if type(tensor) is Tensor else of_class(Tensor, tensor)


def check_subclass(cls: Any) -> None:
    """Raises: TypeError if `cls` is no class of tensors."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )


class AskingTensor(Tensor):
    """What users' subclasses of Tensor inherit first: the methods, operators and properties of Tensor, which ask."""

    __slots__ = ()


def _init_subclass(cls: Any, **kwargs: Any) -> None:
    super(Tensor, cls).__init_subclass__(**kwargs)
    if not has_say(cls):
        _SILENT.add(cls)
        return
    known.add(cls)
    complete_asking()
    if AskingTensor not in cls.__mro__:
        bases = cls.__bases__
        cls.__bases__ = (
            tuple(AskingTensor if base is Tensor else base for base in bases)
            if Tensor in bases
            else (*bases, AskingTensor)
        )


_default.__qualname__, _default.__name__ = "Tensor.__torch_function__", "__torch_function__"
Tensor.__torch_function__ = classmethod(_default)  # type: ignore[attr-defined]
Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment]
Tensor._make_subclass = staticmethod(make_subclass)  # type: ignore[attr-defined]

# Members that nobody is asked about.
UNASKED = frozenset(
    "__new__ __hash__ __iter__ __init_subclass__ __torch_function__ __array_namespace__ __buffer__ as_subclass".split()
)

# Handlers hear of the method that an operator stands for, where it has one.
OPERATORS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "div", "pow", "matmul")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "div", "pow")},
    **{"__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder", "__imod__": "remainder_"},
    **{"__floordiv__": "__floordiv__", "__ifloordiv__": "floor_divide_"},
    **{name: name for each in ("and", "or", "xor", "lshift", "rshift") for name in (f"__{each}__", f"__i{each}__")},
    **{f"__{name}__": name for name in ("ne", "lt", "le", "gt", "ge")},
    "__eq__": "__eq__",
}  # fmt: skip
# Forward operator -> its reflected form, and what that stands for.
REFLECTED = {
    **{f"__{name}__": (f"__r{name}__", name) for name in ("add", "mul")},
    **{f"__{name}__": (f"__r{name}__", f"bitwise_{name}") for name in ("and", "or", "xor")},
    **{f"__{name}__": (f"__r{name}__", f"__r{name}__")
       for name in ("sub", "div", "floordiv", "mod", "pow", "matmul", "lshift", "rshift")},
    "__truediv__": ("__rtruediv__", "__rdiv__"),
}  # fmt: skip
UNARY = {"__neg__": "neg", "__abs__": "abs", "__pos__": "positive"}


@functools.cache
def _methods_of_operators() -> dict[Callable, Callable]:
    """Operators of Tensor -> the methods that they stand for."""
    pairs = (*OPERATORS.items(), *REFLECTED.values(), *UNARY.items())
    members = vars(Tensor)
    return {members[name]: members[method] for name, method in pairs if name in members}


@functools.cache
def complete_asking() -> None:
    """Give `AskingTensor` its members; by now Tensor has all of its own."""
    for name, member in list(vars(Tensor).items()):
        if name in UNASKED:
            continue
        if isinstance(member, FunctionType):
            setattr(AskingTensor, name, _asking_method(member, UNARY.get(name, name)))
        elif isinstance(member, property):
            setattr(AskingTensor, name, _asking_property(member))
    for name, method in OPERATORS.items():
        if hasattr(Tensor, name):
            setattr(AskingTensor, name, _asking_operator(name, method))
    for forward, (name, method) in REFLECTED.items():
        setattr(AskingTensor, name, _asking_reflected(name, method, OPERATORS[forward]))
    AskingTensor.__hash__ = Tensor.__hash__  # type: ignore[method-assign]  # __eq__ took it away


def _asking_method(function: Callable, name: str) -> Callable:
    func = getattr(Tensor, name)

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        answer = overridden(func, args, kwargs)
        return function(*args, **kwargs) if answer is PLAIN else answer

    return method


def _asking_property(member: property) -> property:
    """Handlers hear of a property by its `__get__`, `__set__` and `__delete__`."""

    def asking(function: Callable) -> Callable:
        def method(*args: Any) -> Any:
            answer = overridden(function, args, {})
            return function(*args) if answer is PLAIN else answer

        return method

    return property(
        asking(member.__get__),
        asking(member.__set__) if member.fset else None,
        asking(member.__delete__) if member.fdel else None,
        member.__doc__,
    )


def _asking_operator(name: str, method: str) -> Callable:
    """As PyTorch, operators answer NotImplemented where the method raises TypeError."""
    function, func = getattr(Tensor, name, None), getattr(Tensor, method, None)

    def operator(self: Any, other: Any) -> Any:
        if not switch.on:
            return function(self, other)  # type: ignore[misc]
        return _operated(func, self, other)

    operator.__name__ = operator.__qualname__ = name
    return operator


_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()",
    "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def _asking_reflected(name: str, method: str, forward: str) -> Callable:
    """Python prefers the reflected operator of a subclass: `tensor + mine` comes here, and is turned round again."""
    function, func, turned = getattr(Tensor, name, None), getattr(Tensor, method), getattr(Tensor, forward)
    symbol = _SYMBOLS[name.strip("_")[1:]]

    def operator(self: Any, other: Any) -> Any:
        if not switch.on:
            return function(self, other)  # type: ignore[misc]
        if not isinstance(other, Tensor):
            return _operated(func, self, other)
        answer = _operated(turned, other, self)
        if answer is NotImplemented and not has_say(type(other)):
            # Python would go on to the operator of the plain tensor, which asks nobody.
            raise TypeError(
                f"unsupported operand type(s) for {symbol}: '{type(other).__name__}' and '{type(self).__name__}'"
            )
        return answer

    operator.__name__ = operator.__qualname__ = name
    return operator


def _operated(func: Any, self: Any, other: Any) -> Any:
    answer = overridden_operator(func, (self, other), {})
    return func(self, other) if answer is PLAIN else answer
