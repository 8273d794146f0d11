"""weft.compiler: what `torch.compile` gives. Every operation is compiled already, so models and functions run as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .compat.missing import module_getattr


def compile(  # noqa: A001 (PyTorch's name)
    model: Callable | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`model` again: a function as it is, a module within one that has its state under `_orig_mod`, as in PyTorch.

    Without `model`, a decorator. The other arguments have no effect.
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
        return lambda model: compile(model, mode=mode, options=options, disable=disable)
    if not callable(model):
        raise RuntimeError(f"torch.compile: {model!r} is neither a module nor a function")
    from .nn import Module  # loaded when first used

    if disable or not isinstance(model, Module):
        return model
    from ._dynamo import OptimizedModule

    return OptimizedModule(model)


def disable(fn: Callable | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn` as it is, or a decorator that leaves functions as they are."""
    return fn if fn is not None else lambda fn: fn


def allow_in_graph(fn: Any) -> Any:
    """`fn` as it is."""
    return fn


def reset() -> None:
    """Forget what was compiled: there is nothing."""


def is_compiling() -> bool:
    """Whether the program is being traced rather than run: never."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def cudagraph_mark_step_begin() -> None:
    """Says that a new step begins; for CUDA graphs."""


__getattr__ = module_getattr(__name__)
