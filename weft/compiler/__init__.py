"""weft.compiler, with `torch.compile`: functions that are recorded once, and replayed without Python between their kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..compat.missing import module_getattr

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin",
    "disable", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "keep_portable_guards_unsafe", "keep_tensor_guards_unsafe", "list_backends", "load_cache_artifacts",
    "load_compiled_function", "nested_compile_region", "reset", "save_cache_artifacts",
    "set_default_backend", "set_enable_guard_collectives", "set_stance", "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def compile(  # noqa: A001 (PyTorch's name)
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """A function that repeats what `model` did for arguments like these, without Python between its kernels.

    The first call with new specs is recorded (docs/compile.md says how); a function that cannot be recorded runs as it is, and the
    logger "weft.compiler" says why. A module becomes one that has its state under `_orig_mod`, as in PyTorch. Without `model`,
    a decorator. `fullgraph` raises an error where PyTorch's compiler breaks the graph, too. `disable` returns `model`.
    `recompile_limit` is the number of records, `torch._dynamo.config.recompile_limit` by default. The other arguments
    have no effect.

    Raises: RuntimeError if both `mode` and `options` are given.

    >>> import weft as torch
    >>> torch.compile(lambda x: x + 1)(torch.zeros(2))
    tensor([1., 1.])
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return lambda model: compile(
            model,
            fullgraph=fullgraph,
            mode=mode,
            options=options,
            disable=disable,
            recompile_limit=recompile_limit,
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable:
        return model
    from ..nn import Module  # loaded when first used
    from ._compiled import wrapped

    if not isinstance(model, Module):
        return wrapped(model, fullgraph, recompile_limit)
    from .optimized_module import OptimizedModule

    return OptimizedModule(model, fullgraph, recompile_limit)


def disable(
    fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """`fn`, marked so that a function that calls it runs as it is; or a decorator."""
    if fn is None:
        return disable
    if isinstance(fn, FunctionType):
        fn._torchdynamo_disable = True  # type: ignore[attr-defined]
    return fn


def allow_in_graph(fn: Any) -> Any:
    """`fn` as it is.

    Raises: AssertionError if the argument is not a function.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: Any) -> Any:
    """`fn` as it is; it is called each time."""
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(
    original_fn: Callable,
    *,
    can_constant_fold_through: bool = False,
    skip_signature_check: bool = False,
) -> Callable[[Callable], Callable]:
    """A decorator that gives back the function that a tracer would take for `original_fn`."""
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original_fn)!r}")
    return lambda fn: fn


def reset() -> None:
    """Forget the records of all compiled functions."""
    from ._compiled import forget_all

    forget_all()


def is_compiling() -> bool:
    """Whether the program is being traced rather than run: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether the program is being traced rather than run: never."""
    return False


def is_exporting() -> bool:
    """Whether the program is being exported by tracing: never."""
    return False


def cudagraph_mark_step_begin() -> None:
    """Says that a new step begins; for CUDA graphs."""


# ---- Backends and settings -----------------------------------------------------------------------------------------------


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `torch.compile(backend=...)` takes."""
    from .backends.registry import list_backends as backends

    return backends(exclude_tags)


_default_backend: str | Callable[..., Any] = "inductor"


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Keep the backend that `torch.compile` names by default; it has no effect.

    Raises: InvalidBackend if there is none of this name.
    """
    global _default_backend
    if isinstance(backend, str):
        from .backends.registry import lookup_backend

        lookup_backend(backend)
    _default_backend = "inductor" if backend is None else backend


def get_default_backend() -> str | Callable[..., Any]:
    """What `set_default_backend` was given last."""
    return _default_backend


def set_stance(
    stance: str = "default",
    *,
    skip_guard_eval_unsafe: bool = False,
    force_backend: str | Callable[..., Any] | None = None,
) -> Any:
    """How compiled functions are to run, see `_compiled.set_stance`. A call, a context or a decorator.

    Raises: RuntimeError for a stance that does not exist.
    """
    from ._compiled import set_stance as complete

    return complete(stance, skip_guard_eval_unsafe=skip_guard_eval_unsafe, force_backend=force_backend)


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Set a switch for several processes, which has no effect, and return its former value."""
    global _guard_collectives
    before, _guard_collectives = _guard_collectives, enabled
    return before


_guard_collectives = False


def wrap_numpy(fn: Callable) -> Callable:
    """A function of tensors that calls `fn`, a function of NumPy arrays."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        import numpy as np

        from ..core.pytree import tree_map
        from ..core.tensor import Tensor
        from ..interop.numpy import from_numpy

        def to_numpy(value: Any) -> Any:
            return value.numpy() if isinstance(value, Tensor) else value

        def to_tensor(value: Any) -> Any:
            return from_numpy(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value

        return tree_map(to_tensor, fn(*tree_map(to_numpy, args), **tree_map(to_numpy, kwargs)))

    return wrapper


def nested_compile_region(
    fn: Any = None, *, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """`fn` as it is, or a decorator that leaves functions as they are."""
    return fn if fn is not None else lambda fn: fn


# ---- Caches and guards ---------------------------------------------------------------------------------------------------


def save_cache_artifacts() -> None:
    """None: no function was compiled by tracing, so there is nothing to keep."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """None, because weft does not use PyTorch's compiled code."""


def load_compiled_function(
    file: Any, *, f_globals: dict[str, object] | None = None, external_data: dict[str, Any] | None = None
) -> Any:
    """Raises: NotImplementedError, because weft does not run PyTorch's compiled code."""
    raise NotImplementedError(
        "torch.compiler.load_compiled_function: weft does not run what PyTorch compiled"
    )


def keep_portable_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Whether to keep each condition of a compiled function: yes if it also holds in other processes."""
    return [each.guard_type not in ("ID_MATCH", "TYPE_MATCH") for each in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Any, keep_parameters: bool = False) -> list[bool]:
    """Whether to keep each condition of a compiled function: yes if it is about a tensor."""
    return [each.guard_type == "TENSOR_MATCH" for each in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Whether to keep each condition of a compiled function: yes unless it is about a module of torch.nn."""
    return [not str(getattr(each, "orig_guard", each)).startswith("torch.nn") for each in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Any) -> list[bool]:
    """Whether to keep each condition of a compiled function: yes unless it is about a module."""
    return [each.guard_type != "NN_MODULE" for each in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Any) -> list[bool]:
    """Whether to keep each condition of a compiled function: yes unless it is about a global variable."""
    return [not each.is_global for each in guard_entries]


def skip_all_guards_unsafe(guard_entries: Any) -> list[bool]:
    """Which conditions of compiled functions to keep: none."""
    return [False for _ in guard_entries]


__getattr__ = module_getattr(__name__, ("config",))
