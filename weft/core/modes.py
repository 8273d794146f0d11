"""`TorchFunctionMode`: an object that is asked about each call of a public function or method inside its `with` block.

Functions know nothing of modes, so that they cost nothing while there are none. The first mode that is entered, in any
thread, exchanges the code of each public function for code that looks at the modes of its thread (`_watch`); the last
one that ends puts the code back. The function object stays the same, so that handlers compare it with `torch.add`, and
names that were imported earlier are watched as well. One exchange of all functions takes about 1 ms.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from .locks import new_lock
from .names import FUNCTIONS, ROOT
from .overrides import (
    OPERATORS,
    PLAIN,
    REFLECTED,
    UNASKED,
    AskingTensor,
    DisableTorchFunctionSubclass,
    ask,
    complete_asking,
    full_name,
    known,
    overridden,
    overriding,
    public_function,
    switch,
)
from .restoring import Restoring
from .tensor import Tensor


class _Modes(threading.local):
    stack: tuple[Any, ...] = ()  # the innermost last


modes = _Modes()


class TorchFunctionMode(Restoring):
    """Base of modes: `__torch_function__(self, func, types, args, kwargs)` decides what each call inside the block gives.

    While it decides, the mode is off, so that it can call `func` itself.

    >>> import weft as torch
    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **kwargs or {})
    >>> with Names():
    ...     x = torch.ones(2) + 1
    ones
    add
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        push_mode(self)
        return self

    def _restore(self) -> None:
        if self in modes.stack:
            pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance; an older way to write `cls(...)`."""
        warnings.warn(
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2
        )
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call be as it is."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return func(*args, **kwargs or {})


class _Without(Restoring):
    """A context in which only the modes of `stack` are on; its value is the mode that is off."""

    def __init__(self, stack: tuple[Any, ...]):
        self._stack = stack

    def __enter__(self) -> Any:
        self._outer = modes.stack
        modes.stack = self._stack
        return self._outer[-1]

    def _restore(self) -> None:
        modes.stack = self._outer


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Neither classes nor modes are asked inside."""

    def __enter__(self) -> None:
        self._modes = modes.stack
        super().__enter__()
        modes.stack = ()

    def _restore(self) -> None:
        super()._restore()
        modes.stack = self._modes


def push_mode(mode: TorchFunctionMode) -> None:
    """Let `mode` decide first, from now on and in this thread."""
    _watch()
    modes.stack = (*modes.stack, mode)


def pop_mode() -> TorchFunctionMode:
    """Take the innermost mode off."""
    mode = modes.stack[-1]
    modes.stack = modes.stack[:-1]
    _unwatch()
    return mode


def pop_mode_temporarily() -> _Without:
    """A context in which the innermost mode is off."""
    return _Without(modes.stack[:-1])


class _Call(NamedTuple):
    """What the exchanged code of a function passes on."""

    function: Any  # what modes hear of
    original: Callable  # a copy of the function that has its own code
    is_operator: bool  # operators answer NotImplemented where methods raise TypeError


def _called(call: _Call, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What becomes of a call while a mode is on in some thread."""
    if not modes.stack:
        # A handler calls the function that it was told of: then the classes of the arguments are asked.
        if known and (answer := overridden(call.function, args, kwargs)) is not PLAIN:
            return answer
        return call.original(*args, **kwargs)
    if switch.skips:
        switch.skips = False
        return call.original(*args, **kwargs)
    if not call.is_operator:
        return ask_modes(call.function, args, kwargs)
    try:
        return ask_modes(call.function, args, kwargs)
    except TypeError:
        return NotImplemented


def ask_modes(function: Callable, args: tuple, kwargs: dict[str, Any], relevant: Any = None) -> Any:
    """What the innermost mode makes of a call; if it answers NotImplemented, what the classes of the arguments do.

    relevant: the arguments whose classes are asked; all, if it is None.
    """
    values = (*args, *kwargs.values()) if relevant is None else relevant
    found = overriding(values) if switch.on else []
    with _Without(modes.stack[:-1]) as mode:
        answer = mode.__torch_function__(
            public_function(function), tuple(map(type, found)), args, kwargs or None
        )
        if answer is NotImplemented and found:
            return ask(function, found, args, kwargs)
    if answer is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for '{full_name(function) or function.__name__}'; all __torch_function__ handlers "
            f"returned NotImplemented:\n\n  - mode object {mode!r}"
        )
    return answer


# ---- The exchange of code ------------------------------------------------------------------------------------------

_lock = new_lock()
_entered = 0  # modes that are on, in all threads
_own_code: list[tuple[FunctionType, CodeType]] = []  # of the functions that are watched now

# Functions that are never asked about: they take and make no tensors.
_UNWATCHED = frozenset(
    "is_tensor is_storage typename broadcast_shapes manual_seed seed initial_seed get_rng_state set_rng_state from_numpy "
    "set_default_tensor_type is_anomaly_enabled is_anomaly_check_nan_enabled _assert".split()
)
_UNWATCHED_METHODS = UNASKED | {"__init__", "_legacy_new", "_make_subclass"}
_REFLECTED_NAMES = frozenset(name for name, _ in REFLECTED.values())


@functools.cache
def _watched() -> list[tuple[FunctionType, CodeType]]:
    """The functions that modes are asked about, each with the code that asks."""
    import importlib

    complete_asking()
    init = importlib.import_module(f"{ROOT}.nn.init")
    found: dict[int, tuple[FunctionType, CodeType]] = {}
    functions = [
        *(function for name, function in FUNCTIONS.items() if name not in _UNWATCHED),
        *(value for name, value in vars(init).items() if name.endswith("_") and not name.startswith("_")),
    ]
    for calls in (((each, each, False) for each in functions), _members(Tensor), _members(AskingTensor)):
        for function, reported, is_operator in calls:
            if isinstance(function, FunctionType) and id(function) not in found:
                found[id(function)] = function, _asking_code(function, reported, is_operator)
    return list(found.values())


def _members(cls: type) -> Iterator[tuple[Any, Any, bool]]:
    """Methods and the functions of properties: what runs, what modes hear of, and whether it is an operator."""
    for name, member in vars(cls).items():
        if name in _UNWATCHED_METHODS:
            continue
        public = vars(Tensor).get(name, member)
        if isinstance(member, property):
            yield member.fget, public.__get__, False
            yield member.fset, public.__set__, False
            yield member.fdel, public.__delete__, False
        elif isinstance(member, FunctionType):
            yield member, public_function(public), name in OPERATORS or name in _REFLECTED_NAMES


def _asking_code(function: FunctionType, reported: Any, is_operator: bool) -> CodeType:
    """Code for `function` that calls `_called` with what modes hear of, and with a copy that has the function's own code."""
    own = function.__code__
    copy = FunctionType(
        own, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    # A function keeps its cells, so the new code must have as many free variables, under the same names.
    template = _template(len(own.co_freevars))
    values = {"called": _called, "call": _Call(reported, copy, is_operator)}
    constants = tuple(
        values.get(each, each) if isinstance(each, str) else each for each in template.co_consts
    )
    return template.replace(
        co_consts=constants,
        co_freevars=own.co_freevars,
        co_name=own.co_name,
        co_qualname=own.co_qualname,
        co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno,
    )


@functools.cache
def _template(free_variables: int) -> CodeType:
    names = [f"free{index}" for index in range(free_variables)]
    uses = f"        if 0: {', '.join(names)}\n" if names else ""
    source = (
        f"def outer({', '.join(names)}):\n    def inner(*args, **kwargs):\n{uses}"
        "        return 'called'('call', args, kwargs)\n    return inner\n"
    )
    namespace: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # the constants that are called become functions
        exec(source, namespace)
    return namespace["outer"](*names).__code__


def _watch() -> None:
    global _entered
    with _lock:
        if _entered == 0:
            _own_code[:] = [(function, function.__code__) for function, _ in _watched()]
            for function, code in _watched():
                function.__code__ = code
        _entered += 1


def _unwatch() -> None:
    global _entered
    with _lock:
        _entered -= 1
        if _entered == 0:
            for function, code in _own_code:
                function.__code__ = code
