"""The code of public functions, which others exchange: modes, the guards of layouts, and machine code.

A function object stays the same, because programs compare functions and import them early; its `__code__` changes. Of what stands in front of the code that
the function was defined with, the last in this list runs first:

    guard           core/layout_calls.py, from the first tensor that is not plain on: asks the rules of its layout
    machine code    families/native_calls.py, once the process is busy: calls a builtin, and a copy of the function for other calls
    entry           core/modes.py, while modes are on: asks them

Where machine code stands, a guard that comes later goes to the copy behind it, so that usual calls of plain tensors do not meet it.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterable
from inspect import CO_VARARGS
from types import CodeType, FunctionType
from typing import Any

from .locks import new_lock

exchange_lock = new_lock()
# While modes are on: the watched functions, each with the code that it gets back, by the identity of the function.
watched_functions: dict[int, tuple[FunctionType, CodeType]] = {}

# Functions with a guard for tensors of other layouts (`core/layout_calls.py`), each with the code of the guard and its own.
guarded: dict[FunctionType, tuple[CodeType, CodeType]] = {}


def own_code(function: FunctionType) -> CodeType:
    """The code that the function has while no mode is on and no guard stands before it."""
    watched = watched_functions.get(id(function))
    code = function.__code__ if watched is None else watched[1]
    guard = guarded.get(function)
    return code if guard is None or code is not guard[0] else guard[1]


# Functions whose code machine code has replaced -> copies with their own code, which machine code calls for all other calls.
displaced: dict[FunctionType, FunctionType] = {}


def displace(function: FunctionType) -> FunctionType:
    """A copy of a function whose code machine code is about to replace."""
    copy = displaced[function] = with_own_code(function)
    if function in guarded:
        copy.__code__ = guarded[function][0]
    return copy


def with_own_code(function: FunctionType) -> FunctionType:
    """A copy of the function, which keeps its own code while modes are on."""
    copy = FunctionType(
        own_code(function),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__qualname__ = function.__qualname__  # which errors about arguments name
    return copy


def code_like(own: CodeType, source: str, **constants: Any) -> CodeType:
    """The code of a function in `source`, in place of `own`; texts that name `constants` stand for them."""
    # A function keeps its cells, so the new code must have as many free variables, under the same names.
    template = _template(source, len(own.co_freevars))
    return template.replace(
        co_consts=tuple(
            constants.get(each, each) if type(each) is str else each for each in template.co_consts
        ),
        co_freevars=own.co_freevars,
        co_name=own.co_name,
        co_qualname=own.co_qualname,
        co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno,
    )


@functools.cache
def _template(source: str, free_variables: int) -> CodeType:
    names = [f"free{index}" for index in range(free_variables)]
    head, body = source.split("\n", 1)
    uses = f"    if 0: {', '.join(names)}\n" if names else ""
    nested = f"{head}\n{uses}{body}".replace("\n", "\n    ")
    outer = f"def outer({', '.join(names)}):\n    {nested}\n    return function\n"
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # the constant that is called becomes a function
        exec(outer, namespace)
    return namespace["outer"](*names).__code__


def exchange_code(new: Iterable[tuple[FunctionType, CodeType]]) -> None:
    """Give functions new code, which calls the same or does the same; while there are modes, after the last one ends."""
    with exchange_lock:
        for function, code in new:
            described = hasattr(function, "__wrapped__") or hasattr(function, "__signature__")
            if code.co_flags & CO_VARARGS and not described:
                signature = inspect.signature(with_own_code(function))
                function.__signature__ = signature  # type: ignore[attr-defined]  # the new code hides it
            if id(function) in watched_functions:
                watched_functions[id(function)] = function, code
            else:
                function.__code__ = code
