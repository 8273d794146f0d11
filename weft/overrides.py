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
from types import FunctionType
from typing import Any

from .compat.missing import module_getattr
from .core.dispatch import PLAIN
from .core.grad_mode import mode
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
    return _names().get(f) or full_name(f)


@functools.cache
def _names() -> dict[Callable, str]:
    return {
        function: name
        for functions in reversed(_overridable().values())
        for name, function in reversed(functions.items())
    }


def get_default_nowrap_functions() -> set[Callable]:
    """The functions whose results the default `__torch_function__` gives as they are."""
    return set(unconverted())


# Names of functions and of methods that PyTorch ignores, and of those of weft's that raise errors for all arguments.
_IGNORED = (
    "arange are_deterministic_algorithms_enabled as_strided as_tensor asarray autocast_decrement_nesting "
    "autocast_increment_nesting bartlett_window blackman_window broadcast_shapes can_cast clear_autocast_cache compile cond "
    "cudnn_is_acceptable empty empty_permuted empty_quantized empty_strided eye fft.fftfreq fft.rfftfreq fill fork "
    "from_dlpack from_file from_numpy frombuffer full get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
    "get_autocast_ipu_dtype get_autocast_xla_dtype get_default_device get_default_dtype get_deterministic_debug_mode "
    "get_device_module get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state hamming_window "
    "hann_window init_num_threads initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_cache_enabled "
    "is_autocast_cpu_enabled is_autocast_enabled is_autocast_ipu_enabled is_autocast_xla_enabled "
    "is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled is_storage is_tensor "
    "is_vulkan_available is_warn_always_enabled kaiser_window linspace load logspace manual_seed nn.functional.grouped_mm "
    "nn.functional.hardsigmoid nn.functional.hardswish nn.functional.scaled_grouped_mm nn.functional.scaled_mm "
    "nn.functional.sigmoid nn.functional.tanh nn.functional.upsample nn.functional.upsample_bilinear "
    "nn.functional.upsample_nearest nn.init.calculate_gain normal ones promote_types rand rand_like randint randint_like "
    "randn randn_like randperm range result_type save scalar_tensor seed set_anomaly_enabled set_autocast_cache_enabled "
    "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype "
    "set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled set_default_device "
    "set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal "
    "set_num_interop_threads set_num_threads set_printoptions set_rng_state set_warn_always sparse_bsc_tensor "
    "sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor "
    "sym_constrain_range sym_constrain_range_for_size sym_fresh_size tensor thread_safe_generator tril_indices "
    "triu_indices typename use_deterministic_algorithms vander vmap zeros "
    "sym_int sym_float sym_max sym_min sym_not sym_ite sym_sum sym_sqrt eig symeig lstsq solve matrix_rank"
).split()
_IGNORED_METHODS = (
    "__class__ __delitem__ __dir__ __hash__ __init_subclass__ __iter__ __new__ __subclasshook__ __torch_dispatch__ "
    "__torch_function__ _addmm_activation _conj _conj_physical _has_symbolic_sizes_strides _is_all_true _is_any_true "
    "_is_zerotensor _make_subclass _make_wrapper_subclass _neg_view _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc "
    "_to_sparse_csr _lazy_clone _typed_storage _use_count _view_func _view_func_unsafe as_subclass eig lstsq new new_empty "
    "new_empty_strided new_full new_ones new_tensor new_zeros reinforce solve stride symeig to_padded_tensor to_sparse_bsc "
    "to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr unflatten"
).split()


def get_ignored_functions() -> set[Callable]:
    """The public functions and methods that never call `__torch_function__`, or of which PyTorch's tests need not know."""
    import weft

    found = {_member(weft, path) for path in _IGNORED}
    found |= {
        getattr(Tensor, name, None) for name in _IGNORED_METHODS if name not in ("__hash__", "__class__")
    }
    return found - {None}


def _member(owner: Any, path: str) -> Any:
    """`owner.path`, None if there is none."""
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


@functools.cache
def _overridable() -> dict[Any, dict[str, Any]]:
    """By namespace, the functions that call `__torch_function__`, by the names that `resolve_name` gives."""
    import weft

    ignored = get_ignored_functions()
    in_python = set(
        weft.functional.__all__  # type: ignore[attr-defined]  # stubs do not list it
    )  # the functions that PyTorch writes in Python, in torch.functional
    elsewhere = {id(function) for path, function in FUNCTIONS.items() if path.startswith("nn.functional.")}
    found: dict[Any, dict[str, Any]] = {
        weft: {}, weft.functional: {}, weft.nn.functional: {}, weft.nn.init: {}, Tensor: {}, weft.linalg: {}, weft.fft: {},
        weft.special: {},
    }  # fmt: skip
    for path, function in FUNCTIONS.items():
        space, _, name = path.rpartition(".")
        if name.startswith("_") or name.endswith("_") or not isinstance(function, FunctionType):
            continue
        if function in ignored or not space and id(function) in elsewhere:
            continue
        place = (
            weft.functional if not space and name in in_python else _member(weft, space) if space else weft
        )
        if place in found:
            prefix = "functional." if place is weft.functional else ""
            found[place][f"torch.{prefix}{path}"] = function
    for name in ("constant_", "kaiming_uniform_", "normal_", "uniform_"):
        found[weft.nn.init][f"torch.nn.init.{name}"] = getattr(weft.nn.init, name)
    for name, member in vars(Tensor).items():
        if name in _IGNORED_METHODS or name in UNASKED:
            continue
        if isinstance(member, FunctionType):
            found[Tensor][f"torch.Tensor.{name}"] = member
        elif isinstance(member, property):
            found[member] = {f"torch.Tensor.{name}.__get__": member.__get__}
    return found


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """The functions that call `__torch_function__`, by namespace; a property is a namespace of its `__get__`."""
    return {space: list(functions.values()) for space, functions in _overridable().items()}


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
    """Operators within a handler of `__torch_dispatch__` are recorded again. Modes and classes are told of them in any case."""
    outer, mode.enabled = mode.enabled, mode.reverse and not mode.inference
    try:
        yield
    finally:
        mode.enabled = outer


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
