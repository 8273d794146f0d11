"""`__torch_function__`: which classes and modes override public functions, and how they are asked.

Two kinds of class override functions: subclasses of Tensor, and other classes that define `__torch_function__`.
`overridden` asks them, after the modes of the thread. `core/entry.py` makes the functions that call it.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any

from .device import device
from .dispatch import PLAIN
from .dtype import DType
from .layout import Layout, MemoryFormat
from .registry import FUNCTIONS, public_of
from .restoring import Restoring
from .spec import Spec
from .tensor import Tensor
from .warn import user_level

# The classes that are known to override functions. While it is empty, functions do not look at their arguments.
# A subclass of Tensor enters it when it is defined, any other class when the first call fails that one of its objects
# is given to. While a mode is on in some thread, the class of modes is in it.
override_types: set[type] = set()


class _Switch(threading.local):
    on = True
    dispatches = True  # whether classes with `__torch_dispatch__` are told of operators
    skips = False  # whether the next function asks neither modes nor classes: `torch.overrides.redispatch_function`


switch = _Switch()


class _Modes(threading.local):
    stack: tuple[Any, ...] = ()  # the modes with `__torch_function__`, the innermost last
    dispatch: tuple[Any, ...] = ()  # the modes with `__torch_dispatch__`


modes = _Modes()

# `_library.dispatching.dispatched`, from the first mode or class with `__torch_dispatch__` on: it is called with
# (function, args, kwargs) if `__torch_function__` does not override a call.
dispatcher: Callable[[Callable, tuple, dict[str, Any]], Any] | None = None

# `layout_calls.answer`, from the first tensor on that is not plain: it is called with (function, args, kwargs) if nothing else
# overrides a call.
layout_answer: Callable[[Callable, tuple, dict[str, Any]], Any] | None = None

# The spec of any tensor. The attribute `spec` of an uninitialized parameter raises, but modes are told of its other attributes.
spec_of: Callable[[Tensor], Spec] = Tensor.spec.__get__  # type: ignore[attr-defined]

# Classes that do not override functions.
_SILENT: set[type] = {
    *(Tensor, int, float, bool, complex, str, bytes, slice, type, dict, NoneType),
    *(DType, Layout, MemoryFormat, device),
}


class DisableTorchFunctionSubclass(Restoring):
    """Classes are not asked inside: their objects are handled as plain tensors, and results are plain tensors."""

    def __enter__(self) -> None:
        self._outer = switch.on
        switch.on = False

    def _restore(self) -> None:
        switch.on = self._outer


class DisableTorchDispatch(Restoring):
    """Neither dispatch modes nor classes with `__torch_dispatch__` are told of operators inside."""

    def __enter__(self) -> None:
        self._outer = switch.dispatches, modes.dispatch
        switch.dispatches, modes.dispatch = False, ()

    def _restore(self) -> None:
        switch.dispatches, modes.dispatch = self._outer


def disabled(func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_function__` of subclasses that override nothing, such as Parameter: their results are plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs or {})


def overrides_functions(kind: type) -> bool:
    """Whether this class defines a `__torch_function__` that is asked."""
    if kind in _SILENT:
        return False
    answer = getattr(kind, "__torch_function__", None)
    return answer is not None and answer is not disabled


def disabled_dispatch(func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
    """The `__torch_dispatch__` of Tensor, which is never asked. Handlers call it by `super()`, to compute as for plain tensors."""
    with DisableTorchFunctionSubclass(), DisableTorchDispatch():
        return func(*args, **kwargs or {})


def handles_dispatch(kind: type) -> bool:
    """Whether this class of tensors defines `__torch_dispatch__`."""
    return getattr(kind, "__torch_dispatch__", disabled_dispatch) is not disabled_dispatch


def wraps_tensors(kind: type) -> bool:
    """Whether a class says by `__tensor_flatten__` and `__tensor_unflatten__` which tensors its objects wrap."""
    return hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def note_class(kind: type) -> bool:
    """Remember whether a new class overrides functions. Returns the answer."""
    if overrides_functions(kind) or handles_dispatch(kind):
        override_types.add(kind)
        return True
    _SILENT.add(kind)
    return False


def overriding(values: Iterable[Any]) -> list[Any]:
    """One object of each class that overrides functions, of the values and of the items of lists and tuples among them.

    They stand from left to right, but objects of subclasses before those of their base classes.
    """
    result: list[Any] = []
    for value in values:
        for item in value if isinstance(value, (tuple, list)) else (value,):
            kind = type(item)
            if (
                kind not in _SILENT
                and overrides_functions(kind)
                and all(type(other) is not kind for other in result)
            ):
                later = (place for place, other in enumerate(result) if issubclass(kind, type(other)))
                result.insert(next(later, len(result)), item)
    return result


def found_override(values: Iterable[Any]) -> bool:
    """Whether a call failed because no class was known to override functions, and one among its arguments does.

    It is known afterwards, so the call is to be repeated.
    """
    if override_types or not switch.on:
        return False
    override_types.update(map(type, overriding(values)))
    return bool(override_types)


def overridden(
    function: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    is_operator: bool = False,
    relevant: Iterable[Any] | None = None,
) -> Any:
    """The answer of the innermost mode or of the classes of the arguments, PLAIN if there is none to ask.

    relevant: the values whose classes are asked, instead of the classes of all arguments.
    Raises: TypeError if all that were asked answer NotImplemented; an operator returns NotImplemented then.
    """
    if (
        relevant is None and not modes.stack and not modes.dispatch
    ):  # the commonest call after a class is known
        values = (*args, *kwargs.values()) if kwargs else args
        if _SILENT.issuperset(map(type, values)):
            if layout_answer is not None:
                for each in values:
                    if isinstance(each, Tensor) and type(spec_of(each)) is not Spec:
                        return layout_answer(function, args, kwargs)
            return PLAIN
        if not switch.on and dispatcher is None:
            return PLAIN if layout_answer is None else layout_answer(function, args, kwargs)
    if switch.skips:
        switch.skips = False
        return PLAIN if layout_answer is None else layout_answer(function, args, kwargs)
    objects = overriding((*args, *kwargs.values()) if relevant is None else relevant) if switch.on else []
    try:
        if modes.stack:
            return _ask_mode(public_function(function), objects, args, kwargs)
        if objects:
            return _ask_classes(public_function(function), objects, args, kwargs)
        answer = PLAIN if dispatcher is None else dispatcher(function, args, kwargs)
        if answer is PLAIN and layout_answer is not None:
            answer = layout_answer(function, args, kwargs)
        return answer
    except TypeError:
        if is_operator:
            return NotImplemented
        raise


def _ask_mode(function: Callable, objects: list[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """The answer of the innermost mode, which is off meanwhile; if it is NotImplemented, that of the classes."""
    outer = modes.stack
    mode, modes.stack = outer[-1], outer[:-1]
    try:
        answer = mode_handler(mode, "__torch_function__")(
            function, tuple(map(type, objects)), args, kwargs or None
        )
    finally:
        modes.stack = outer
    if answer is NotImplemented and objects:
        return _ask_classes(function, objects, args, kwargs)
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for '{full_name(function) or function.__name__}'; all __torch_function__ handlers "
            f"returned NotImplemented:\n\n  - mode object {mode!r}"
        )
    return answer


def mode_handler(mode: Any, name: str) -> Callable:
    """The handler of a mode.

    Raises: RuntimeError if it is a classmethod, because the class does not know what the mode holds.
    """
    handler = getattr(mode, name)
    if isinstance(getattr(handler, "__self__", None), type):
        raise RuntimeError(
            f"{type(mode).__name__}.{name}: a classmethod is not supported, please make it a plain method"
        )
    return handler


def _ask_classes(function: Callable, objects: list[Any], args: tuple, kwargs: dict[str, Any]) -> Any:
    """The first answer of the handlers of `objects` that is not NotImplemented."""
    types = tuple(map(type, objects))
    for item in objects:
        handler = item.__torch_function__
        if getattr(handler, "__self__", None) is item:
            warnings.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, "
                "please define it as a classmethod.",
                UserWarning,
                stacklevel=user_level(),
            )
        answer = handler(function, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    raise _declined_by_all(function, types)


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


# ---- The names under which handlers are told of functions -------------------------------------------------------------

# Handlers are told of the method that an operator stands for, where it has one.
OPERATORS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "div", "pow", "matmul")},
    **{f"__i{name}__": f"{name}_" for name in ("add", "sub", "mul", "div", "pow")},
    **{"__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder", "__imod__": "remainder_"},
    **{"__floordiv__": "__floordiv__", "__ifloordiv__": "floor_divide_"},
    **{name: name for each in ("and", "or", "xor", "lshift", "rshift") for name in (f"__{each}__", f"__i{each}__")},
    **{f"__{name}__": name for name in ("ne", "lt", "le", "gt", "ge")},
    "__eq__": "__eq__",
}  # fmt: skip
# Forward operator -> its reflected form, and the method that this stands for.
REFLECTED = {
    **{f"__{name}__": (f"__r{name}__", name) for name in ("add", "mul")},
    **{f"__{name}__": (f"__r{name}__", f"bitwise_{name}") for name in ("and", "or", "xor")},
    **{f"__{name}__": (f"__r{name}__", f"__r{name}__")
       for name in ("sub", "div", "floordiv", "mod", "pow", "matmul", "lshift", "rshift")},
    "__truediv__": ("__rtruediv__", "__rdiv__"),
}  # fmt: skip
UNARY = {"__neg__": "neg", "__abs__": "abs", "__pos__": "positive"}


def public_function(function: Callable) -> Callable:
    """The function or method that handlers are told of when `function` is called."""
    while function in public_of:
        function = public_of[function]
    return _methods_of_operators().get(function, function)


@functools.cache
def _methods_of_operators() -> dict[Callable, Callable]:
    """Operators of Tensor -> the methods that they stand for."""
    pairs = (*OPERATORS.items(), *REFLECTED.values(), *UNARY.items())
    members = vars(Tensor)
    return {members[name]: members[method] for name, method in pairs if name in members}


def full_name(function: Callable) -> str | None:
    """`torch.add`, `torch.linalg.norm`, `torch.Tensor.add`, `torch.Tensor.shape.__get__`; None for functions of others."""
    owner = getattr(function, "__self__", None)
    for name, member in vars(Tensor).items():
        if member is function:
            return f"torch.Tensor.{name}"
        if member is owner and isinstance(member, property):
            return f"torch.Tensor.{name}.{function.__name__}"
    return next((f"torch.{name}" for name, each in FUNCTIONS.items() if each is function), None)
