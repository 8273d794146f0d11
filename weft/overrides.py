"""Classes that override functions for their objects: `torch.overrides`.

A class defines `__torch_function__(cls, func, types, args=(), kwargs=None)`, as in PyTorch: a subclass of Tensor, whose
default gives results of the subclass, or any other class.

>>> import weft as torch
>>> class Metres(torch.Tensor):
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         print(func.__name__)
...         return super().__torch_function__(func, types, args, kwargs)
>>> torch.add(Metres([1.0]), 1) * 2
add
mul
__repr__
Metres([4.])
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from .compat.missing import module_getattr
from .core.dispatch import PLAIN
from .core.modes import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    pop_mode,
    pop_mode_temporarily,
    push_mode,
)
from .core.overrides import full_name, modes, overridden, overriding, switch
from .core.registry import FUNCTIONS
from .core.subclasses import UNASKED, unconverted
from .core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of one of these objects overrides functions: it defines `__torch_function__` and is not Tensor.

    It is also True within a `TorchFunctionMode`.

    >>> import weft as torch
    >>> has_torch_function((torch.ones(1), 2.0))
    False
    """
    if switch.skips:
        switch.skips = False
        return False
    return bool(modes.stack) or switch.on and bool(overriding(relevant_args))


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """`has_torch_function` of one object."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function` of the arguments."""
    return has_torch_function(relevant_args)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the classes of `relevant_args` make of `public_api(*args, **kwargs)`.

    Raises: TypeError if all of them answer NotImplemented.
    """
    answer = overridden(public_api, args, kwargs, relevant=relevant_args)
    if answer is PLAIN:
        raise TypeError(
            f"no implementation found for '{full_name(public_api) or public_api}' on types that implement __torch_function__: []"
        )
    return answer


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """Decorator: a function that asks the classes of its arguments; `dispatcher(*args, **kwargs)` says of which ones.

    >>> @wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a + a
    >>> double(2)
    4
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor or of a class that defines `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether it is a method of Tensor, or a property's `__get__`, rather than a function of a namespace.

    >>> import weft as torch
    >>> is_tensor_method_or_property(torch.Tensor.add), is_tensor_method_or_property(torch.add)
    (True, False)
    """
    return getattr(func, "__name__", "") == "__get__" or (full_name(func) or "").startswith("torch.Tensor.")


def resolve_name(f: Callable) -> str | None:
    """The name of a function that can be overridden, with its namespace; None for others.

    >>> import weft as torch
    >>> resolve_name(torch.linalg.norm), resolve_name(torch.Tensor.shape.__get__), resolve_name(len)
    ('torch.linalg.norm', 'torch.Tensor.shape.__get__', None)
    """
    return full_name(f)


def get_default_nowrap_functions() -> set[Callable]:
    """The functions whose results the default `__torch_function__` gives as they are."""
    return set(unconverted())


_IGNORED = (
    "tensor as_tensor asarray scalar_tensor from_dlpack from_file from_numpy frombuffer zeros ones empty full eye rand randn "
    "randint randperm arange range linspace logspace empty_permuted empty_strided tril_indices triu_indices "
    "bartlett_window blackman_window hamming_window hann_window kaiser_window fft.fftfreq fft.rfftfreq "
    "is_tensor is_storage typename broadcast_shapes manual_seed seed initial_seed get_rng_state set_rng_state "
    "sym_int sym_float sym_max sym_min sym_not sym_ite sym_sum sym_sqrt sym_fresh_size sym_constrain_range "
    "sym_constrain_range_for_size eig symeig lstsq solve matrix_rank set_default_tensor_type is_anomaly_enabled is_anomaly_check_nan_enabled"
).split()


def get_ignored_functions() -> set[Callable]:
    """The public functions that never call `__torch_function__`, because they take no tensors or make plain ones."""
    return {FUNCTIONS[name] for name in _IGNORED}


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that call `__torch_function__`, by namespace."""
    import weft

    namespaces: dict[str, ModuleType] = {
        name: functools.reduce(getattr, name.split(".") if name else (), weft)
        for name in ("", "nn.functional", "linalg", "fft", "special")
    }
    ignored = get_ignored_functions()
    found: dict[Any, list[Callable]] = {each: [] for each in namespaces.values()}
    for name, function in FUNCTIONS.items():
        space = name.rpartition(".")[0]
        is_hidden = name.startswith("_") or function in ignored
        if space in namespaces and isinstance(function, FunctionType) and not is_hidden:
            found[namespaces[space]].append(function)
    members = {name: member for name, member in vars(Tensor).items() if name not in UNASKED}
    found[Tensor] = [
        member.__get__ if isinstance(member, property) else member
        for member in members.values()
        if isinstance(member, (FunctionType, property))
    ]
    return found


def get_testing_overrides() -> dict[Callable, Callable]:
    """For each function that calls `__torch_function__`: one with the same parameters that returns -1.

    >>> import inspect
    >>> import weft as torch
    >>> inspect.signature(get_testing_overrides()[torch.nn.functional.linear])
    <Signature (input, weight, bias=None)>
    """
    found = {}
    for functions in get_overridable_functions().values():
        for each in functions:
            found[each] = _dummy(each)
    return found


def _dummy(function: Callable) -> Callable:
    if getattr(function, "__name__", "") == "__get__":
        return lambda self: -1
    parameters = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in inspect.signature(function).parameters.values()
    ]
    shown = inspect.Signature([each if _is_given(each) else each.replace(default=0) for each in parameters])
    dummy = eval(f"lambda {str(shown)[1:-1]}: -1")
    dummy.__defaults__ = tuple(
        [each.default for each in parameters if not _is_given(each) and each.kind is not each.KEYWORD_ONLY]
    )
    dummy.__kwdefaults__ = {
        each.name: each.default
        for each in parameters
        if not _is_given(each) and each.kind is each.KEYWORD_ONLY
    }
    return dummy


def _is_given(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def redispatch_function(func: Callable, types: Any, args: tuple, kwargs: dict[str, Any] | None) -> Any:
    """Call `func` without asking modes or the classes of its arguments; functions that it calls do ask."""
    switch.skips = True
    try:
        return func(*args, **kwargs or {})
    finally:
        switch.skips = False


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """In PyTorch, modes and `__torch_dispatch__` work again within a handler; here they do in any case."""
    yield


_push_mode, _pop_mode, _pop_mode_temporarily = push_mode, pop_mode, pop_mode_temporarily


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode of this thread."""
    return modes.stack[-1] if modes.stack else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The modes of this thread, the innermost last."""
    return list(modes.stack)


def _is_torch_function_mode_enabled() -> bool:
    return bool(modes.stack)


__getattr__ = module_getattr(__name__)
