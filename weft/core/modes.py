"""`TorchFunctionMode`: an object that is asked about each call of a public function or method inside its `with` block.

Functions that `entry` makes ask modes themselves. Others, and those with a fast path in front of their entry, know
nothing of modes, so that they cost nothing while there are none. The first mode that is entered, in any thread,
exchanges the code of each of these for code that calls an entry; the last one that ends puts the code back. The function
object stays the same, so that handlers compare it with `torch.add`, and names that were imported earlier ask as well.
One exchange of all functions takes about 1 ms.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from .above import above
from .checking import write_checks
from .code_exchange import code_like, exchange_lock, watched_functions, with_own_code
from .entry import entry
from .overrides import (
    OPERATORS,
    REFLECTED,
    DisableTorchFunctionSubclass,
    modes,
    override_types,
    public_function,
)
from .registry import FUNCTIONS, entry_of
from .restoring import Restoring
from .subclasses import UNASKED
from .tensor import Tensor
from .warn import user_level


class TorchFunctionMode(Restoring):
    """Base of modes: `__torch_function__(self, func, types, args, kwargs)` decides the result of each call inside the block.

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
            "`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`",
            stacklevel=user_level(),
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
    watch_functions()
    modes.stack = (*modes.stack, mode)


def pop_mode() -> TorchFunctionMode:
    """Take the innermost mode off."""
    mode = modes.stack[-1]
    modes.stack = modes.stack[:-1]
    unwatch_functions()
    return mode


def pop_mode_temporarily() -> _Without:
    """A context in which the innermost mode is off."""
    return _Without(modes.stack[:-1])


# ---- The exchange of code ------------------------------------------------------------------------------------------

_entered = 0  # modes that are on, in all threads
# Each is called with a bool when the first mode is entered, and when the last one ends.
mode_switches: list[Callable[[bool], None]] = []
# Functions that are never asked about: they take and make no tensors.
_UNWATCHED = frozenset(
    "is_tensor is_storage typename broadcast_shapes manual_seed seed initial_seed get_rng_state set_rng_state from_numpy "
    "set_default_tensor_type is_anomaly_enabled is_anomaly_check_nan_enabled _assert".split()
)
_UNWATCHED_METHODS = UNASKED | {"__init__", "_legacy_new", "_make_subclass"}
_REFLECTED_NAMES = frozenset(name for name, _ in REFLECTED.values())


@functools.cache
def _watched() -> list[tuple[FunctionType, CodeType]]:
    """The functions that do not ask modes themselves, each with code that calls an entry."""
    init = above("nn.init")
    functions = [
        *(function for name, function in FUNCTIONS.items() if name not in _UNWATCHED),
        *(value for name, value in vars(init).items() if name.endswith("_") and not name.startswith("_")),
    ]
    result: dict[int, tuple[FunctionType, CodeType]] = {}
    for calls in (((each, each, False) for each in functions), _members()):
        for function, reported, is_operator in calls:
            if not isinstance(function, FunctionType) or id(function) in result:
                continue
            write_checks(function)  # else its first call would do so, and undo the exchange of its code
            behind = entry_of.get(function)
            if behind is None:
                behind = entry(with_own_code(function), reported=reported, is_operator=is_operator)
            if behind is not function:
                result[id(function)] = function, _calling(behind, function.__code__)
    return list(result.values())


def _members() -> Iterator[tuple[Any, Any, bool]]:
    """By method and property of Tensor: the function that runs, the one that modes are told of, whether it is an operator."""
    for name, member in vars(Tensor).items():
        if name in _UNWATCHED_METHODS:
            continue
        if isinstance(member, property):
            yield member.fget, member.__get__, False
            yield member.fset, member.__set__, False
            yield member.fdel, member.__delete__, False
        elif isinstance(member, FunctionType):
            yield member, public_function(member), name in OPERATORS or name in _REFLECTED_NAMES


def _calling(behind: Callable, own: CodeType) -> CodeType:
    """Code that calls `behind`, for a function whose code is `own`."""
    return code_like(
        own, "def function(*args, **kwargs):\n    return 'behind'(*args, **kwargs)", behind=behind
    )


def watch_functions() -> None:
    """Let all public functions ask modes, until `unwatch_functions` is called as often as this."""
    global _entered
    with exchange_lock:
        if _entered == 0:
            for switch in mode_switches:
                switch(True)
            watched = _watched()
            watched_functions.update({id(function): (function, function.__code__) for function, _ in watched})
            override_types.add(TorchFunctionMode)
            for function, code in watched:
                function.__code__ = code
        _entered += 1


def unwatch_functions() -> None:
    """Take back one call of `watch_functions`."""
    global _entered
    with exchange_lock:
        _entered -= 1
        if _entered == 0:
            override_types.discard(TorchFunctionMode)
            for function, code in watched_functions.values():
                function.__code__ = code
            watched_functions.clear()
            for switch in mode_switches:
                switch(False)
