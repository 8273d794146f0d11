"""Decorators and marks for PyTorch's compiler. Most of them change nothing, because records are made for specs and need no hints."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from weft.compiler import allow_in_graph, assume_constant_result, disable, set_stance, substitute_in_graph
from weft.core.tensor import Tensor

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "dont_skip_tracing",
    "error_on_graph_break", "forbid_in_graph", "graph_break", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "patch_dynamo_config", "run",
    "set_stance", "skip_frame", "step_unsupported", "substitute_in_graph",
]  # fmt: skip


def run(fn: Callable | None = None) -> Any:
    """`fn`."""
    return fn if fn is not None else lambda fn: fn


def skip(fn: Callable | None = None) -> Any:
    """`fn`, or a decorator that gives functions back."""
    return fn if fn is not None else lambda fn: fn


def disallow_in_graph(fn: Any) -> Any:
    """`fn`."""
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """`fn`, or the functions of a list, unchanged.

    Raises: RuntimeError if the argument is not a function.
    """
    if isinstance(fn, (list, tuple)):
        return [forbid_in_graph(each) for each in fn]
    if not callable(fn):
        raise RuntimeError("forbid_in_graph applies only to callables")
    fn._dynamo_forbidden = True
    return fn


def nonstrict_trace(traceable_fn: Callable) -> Callable:
    """`traceable_fn`."""
    if not callable(traceable_fn):
        raise RuntimeError("nonstrict_trace expects a callable")
    return traceable_fn


def dont_skip_tracing(fn: Any = None) -> Any:
    """`fn`, or a decorator that gives functions back."""
    return fn if fn is not None else lambda fn: fn


def disable_nested_graph_breaks(fn: Any = None) -> Any:
    """`fn`, or a decorator that gives functions back."""
    return fn if fn is not None else lambda fn: fn


def graph_break(msg: str = "") -> None:
    """A function that calls this runs as it is when it is compiled."""


graph_break._torchdynamo_disable = True  # type: ignore[attr-defined]


def skip_frame(msg: str = "") -> None:
    """Nothing: no function is compiled."""


def step_unsupported(msg: str = "") -> None:
    """Nothing: no function is compiled."""


def is_dynamo_disable_recursive(method: Callable) -> bool | None:
    """Whether `disable` marked a method: None, because it leaves no mark."""
    return None


class _Unchanged(contextlib.ContextDecorator):
    """A context, or a decorator, without effect."""

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, *args: Any) -> None:
        """Nothing to end."""


def error_on_graph_break(error_on_graph_break: bool) -> Any:
    """A context that does nothing. In PyTorch a break of the graph within it is an error, but weft has no graph."""
    return _Unchanged()


def override_cudagraphs(fwd: bool | None = None, bwd: bool | None = None) -> Any:
    """A context for CUDA graphs, of which there are none."""
    return _Unchanged()


def patch_dynamo_config(arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Any:
    """A context, or a decorator, in which settings of `torch._dynamo.config` have other values."""
    from weft.compiler import dynamo_config as config

    return config.patch(arg1, arg2, **kwargs)  # type: ignore[attr-defined]


# ---- Marks of tensors ----------------------------------------------------------------------------------------------------


def _dims(index: Any) -> list[int]:
    return list(index) if isinstance(index, (list, tuple)) else [index]


def _mark(t: Any, name: str, index: Any) -> None:
    found = getattr(t, name, None)
    if found is None:
        found = set()
        setattr(t, name, found)
    found.update(_dims(index))


def mark_dynamic(
    t: Any,
    index: int | list[Any] | tuple[Any],
    *,
    hint_override: int | None = None,
    min: int | None = None,  # noqa: A002 (PyTorch's names)
    max: int | None = None,  # noqa: A002
    specialize_on: list[Any] | None = None,
) -> None:
    """Say that sizes of a tensor will change. Nothing is compiled for sizes, so that needs no preparation."""
    _mark(t, "_dynamo_dynamic_indices", index)


def maybe_mark_dynamic(t: Any, index: int | list[Any] | tuple[Any]) -> None:
    """As `mark_dynamic`, for sizes that may change."""
    _mark(t, "_dynamo_weak_dynamic_indices", index)


def mark_unbacked(t: Any, index: Any, **kwargs: Any) -> None:
    """As `mark_dynamic`, for sizes that depend on data."""
    _mark(t, "_dynamo_unbacked_indices", index)


def mark_static(t: Any, index: int | list[Any] | tuple[Any] | None = None) -> None:
    """Say that sizes of a tensor, or of the parameters of a class of modules, never change."""
    if isinstance(t, Tensor):
        _mark(t, "_dynamo_static_indices", range(t.ndim) if index is None else index)


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that a tensor stays where it is in memory.

    Raises: TypeError if the argument is not a tensor.
    """
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]


def override_optimization_hint(x: Any, val: int) -> None:
    """Nothing: no size is unknown."""
