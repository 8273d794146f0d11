"""`torch.utils._python_dispatch`: modes that are told of each operator beneath autograd."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..core.dispatch import PLAIN, unwatch, watch
from ..core.modes import unwatch_functions, watch_functions
from ..core.overrides import modes, wraps_tensors
from ..core.restoring import Restoring
from ..core.tensor import Tensor


class TorchDispatchMode(Restoring):
    """A context whose `__torch_dispatch__(func, types, args, kwargs)` decides what each operator inside gives.

    `func` is an overload such as `torch.ops.aten.add.Tensor`. While the mode decides, it is off, so that it can call `func`
    itself. The operators of backward passes are told as well. `library/registry/dispatching.py` says how calls become operators.

    >>> import weft as torch
    >>> class Names(TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **kwargs or {})
    >>> with Names():
    ...     x = torch.nn.functional.linear(torch.ones(1, 2), torch.ones(3, 2))
    aten.ones.default
    aten.ones.default
    aten.t.default
    aten.mm.default
    """

    _records = False  # whether it must be told of all steps, so that others raise

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def _call_op(self, op: Any, args: tuple, static: dict[str, Any]) -> Any:
        """The result of an op that is not an operator of PyTorch; PLAIN if the op runs as it would without the mode."""
        return PLAIN

    def __enter__(self) -> Any:
        _push_mode(self)
        return self

    def _restore(self) -> None:
        if self in modes.dispatch:
            _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a new mode."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Return whether the mode belongs to PyTorch's own tracing: no."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        return func(*args, **kwargs or {})


def _push_mode(mode: TorchDispatchMode) -> None:
    """Let `mode` decide first, from now on and in this thread."""
    from .registry import dispatching

    watch_functions()
    watch(dispatching.watched, plain=True)
    modes.dispatch = (*modes.dispatch, mode)


def _pop_mode(mode_key: Any = None) -> TorchDispatchMode:
    """Take the innermost mode off."""
    from .registry import dispatching

    mode = modes.dispatch[-1]
    modes.dispatch = modes.dispatch[:-1]
    unwatch_functions()
    unwatch(dispatching.watched)
    return mode


@contextlib.contextmanager
def _pop_mode_temporarily(mode_key: Any = None) -> Iterator[TorchDispatchMode]:
    """A context in which the innermost mode is off."""
    outer = modes.dispatch
    modes.dispatch = outer[:-1]
    try:
        yield outer[-1]
    finally:
        modes.dispatch = outer


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[TorchDispatchMode]]:
    """A context without modes."""
    outer = modes.dispatch
    modes.dispatch = ()
    try:
        yield list(outer)
    finally:
        modes.dispatch = outer


def _get_current_dispatch_mode() -> TorchDispatchMode | None:
    """Return the innermost mode of this thread."""
    return modes.dispatch[-1] if modes.dispatch else None


def _get_current_dispatch_mode_stack() -> list[TorchDispatchMode]:
    """Return the modes of this thread, the innermost last."""
    return list(modes.dispatch)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Return whether a mode is on."""
    return bool(modes.dispatch)


def any_torch_dispatch_mode_on_stack() -> bool:
    """Return whether a mode is on."""
    return bool(modes.dispatch)


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says by `__tensor_flatten__` and `__tensor_unflatten__` which tensors it wraps."""
    return issubclass(t, Tensor) and t is not Tensor and wraps_tensors(t)


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Return whether an object is a tensor of such a class.

    >>> import weft as torch
    >>> is_traceable_wrapper_subclass(torch.ones(1))
    False
    """
    return is_traceable_wrapper_subclass_type(type(t))


def return_and_correct_aliasing(func: Any, args: tuple, kwargs: dict[str, Any], out: Any) -> Any:
    """What a class of tensors that wraps others returns for an operator, whose results `out` may be new objects.

    An operator that writes returns the argument that it wrote. The result of a view shares the storage of its argument.
    """
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    given = dict(zip((each.name for each in func._schema.arguments), args)) | kwargs
    returned = [
        _aliased(func._schema, declared.alias_info, given, value)
        for declared, value in zip(func._schema.returns, outputs)
    ]
    return type(out)(returned) if isinstance(out, (tuple, list)) else returned[0] if returned else out


def _aliased(schema: Any, alias: Any, given: dict[str, Any], value: Any) -> Any:
    """The value that an operator returns where its schema says `alias`."""
    if alias is None:
        return value
    names = [
        each.name
        for each in schema.arguments
        if each.alias_info is not None and each.alias_info.before_set & alias.before_set
    ]
    argument = given.get(names[0]) if len(names) == 1 else None
    if alias.is_write:
        return argument
    if isinstance(argument, Tensor):
        for each in value if isinstance(value, (tuple, list)) else (value,):
            each._storage = argument._storage
    return value
