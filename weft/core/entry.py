"""`entry`: how a call of a public function begins. It is the one place that asks for `__torch_function__`.

A function that `entry` makes asks the modes of the thread and the classes of its arguments, applies autocast, knows
NumPy's names of arguments and `out=`, and explains what fails. A function that has a fast path for plain tensors stands
in front of an entry, which it calls for everything else (`in_front_of`).

An object whose class defines `__torch_function__` and is not a subclass of Tensor is met first when a call fails because
of it. Then its class becomes known, and the entry repeats the call.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .autocast import casting
from .checking import check_tensors
from .dispatch import PLAIN, recovered, recoverers
from .nearest import note_parameter
from .older_orders import reordered
from .out_of_memory import from_memory_error
from .overrides import (
    found_override,
    overridden,
    override_types,
    overrides_functions,
    switch,
)
from .registry import entry_of, public_of

# What a call asks while a class, a mode or a profile may answer it; `observe` exchanges it.
_ask: Callable = overridden

# Other names of arguments that PyTorch accepts, after NumPy.
_NUMPY_NAMES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x2": "other",
    "x1": "input",
}


def entry(
    body: Callable,
    name: str = "",
    *,
    reported: Callable | None = None,
    is_operator: bool = False,
    writing: Callable | None = None,
    autocast: str | None = None,
) -> Callable:
    """A public function that asks modes and classes and else calls `body`.

    name: how errors call it, if not by the name of `body`.
    reported: the function that handlers are told of, if it is another.
    is_operator: it returns NotImplemented where a function raises because all handlers declined.
    writing: `body` with the argument `out=`, for calls with keywords.
    autocast: the class of the function under autocast, see `core/autocast.py`.
    """
    called = name or body.__name__
    renamed = numpy_names(body)
    plain, full = body, writing or body
    if autocast is not None:
        plain, full = casting(plain, autocast), casting(full, autocast)

    @functools.wraps(body)
    def public(*args: Any, **kwargs: Any) -> Any:
        if override_types and (answer := _ask(public, args, kwargs, is_operator)) is not PLAIN:
            return answer
        try:
            if not kwargs:
                return plain(*args)
            if renamed:
                for theirs in renamed.keys() & kwargs.keys():
                    kwargs[renamed[theirs]] = kwargs.pop(theirs)
            return full(*args, **kwargs)
        except Exception as error:
            if recoverers and (answer := recovered(public, args, kwargs, error)) is not PLAIN:
                return answer
            if found_override((*args, *kwargs.values())):
                return public(*args, **kwargs)
            if isinstance(error, TypeError):
                if (older := reordered(called, args, kwargs)) is not None:
                    return public(*older[0], **older[1])
                note_parameter(error, body, public.__name__)
            if isinstance(error, AttributeError):
                check_tensors(body, called, args, kwargs)
            if isinstance(error, MemoryError):  # of NumPy, or of a list
                raise from_memory_error(error) from None
            raise

    entry_of[public] = public
    if reported is not None:
        public_of[public] = reported
    return public


def observe(observer: Callable[[Callable, tuple, dict[str, Any]], Any] | None) -> None:
    """Let `observer(function, args, kwargs)` answer the calls of all threads while `core/modes.py` watches functions.

    Calls that it answers with PLAIN go on. None takes the observer back.

    Raises: RuntimeError if there is an observer already.
    """
    global _ask
    if observer is not None and _ask is not overridden:
        raise RuntimeError("a profile or a weft.count() is open already: end it before the next one begins")

    def ask(function: Callable, args: tuple, kwargs: dict[str, Any], is_operator: bool = False) -> Any:
        answer = observer(function, args, kwargs)  # type: ignore[misc]
        return overridden(function, args, kwargs, is_operator) if answer is PLAIN else answer

    _ask = overridden if observer is None else ask


def numpy_names(function: Callable) -> dict[str, str]:
    """NumPy's names of the function's arguments -> PyTorch's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return {}
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {
        theirs: ours
        for theirs, ours in _NUMPY_NAMES.items()
        if ours in parameters and theirs not in parameters
    }


def in_front_of(behind: Callable, *others: Callable) -> Callable[[Callable], Callable]:
    """Decorator for a function with a fast path, which calls the entry `behind` if it cannot take that.

    others: further public functions that it calls; handlers are told of the function itself instead.
    """

    def note(function: Callable) -> Callable:
        entry_of[function] = behind
        for inner in (behind, *others):
            public_of[inner] = function
        return function

    return note


def check_overrides(*values: Any) -> None:
    """Raises: TypeError if a class among these was not known to override functions, so that the entry repeats the call.

    For functions that would take objects of any class without failing.
    """
    if not override_types and switch.on and any(overrides_functions(type(value)) for value in values):
        raise TypeError(
            f"an operand overrides functions of PyTorch: {[type(value).__name__ for value in values]}"
        )


def declined(other: Any) -> Any:
    """The answer of an operator to an operand of a class that it does not take; Python asks that class then."""
    check_overrides(other)
    return NotImplemented
