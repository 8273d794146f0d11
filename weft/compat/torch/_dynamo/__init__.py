"""What programs ask of PyTorch's compiler beyond `torch.compile`: settings, which are kept, decorators and marks."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.compat.missing import module_getattr
from weft.compiler import dynamo_config as config
from weft.compiler import errors as exc
from weft.compiler import is_compiling, reset
from weft.compiler.backends.registry import list_backends, lookup_backend, register_backend
from weft.compiler.optimized_module import (
    OptimizedModule,
    explain,
    export,
    is_dynamo_supported,
    optimize,
    optimize_assert,
)

from . import external_utils
from .decorators import (
    allow_in_graph,
    assume_constant_result,
    disable,
    disable_nested_graph_breaks,
    disallow_in_graph,
    dont_skip_tracing,
    error_on_graph_break,
    forbid_in_graph,
    graph_break,
    is_dynamo_disable_recursive,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    nonstrict_trace,
    override_cudagraphs,
    override_optimization_hint,
    patch_dynamo_config,
    run,
    set_stance,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
    "disable_nested_graph_breaks", "disallow_in_graph", "dont_skip_tracing", "error_on_graph_break",
    "explain", "export", "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_disable_recursive",
    "is_dynamo_supported", "list_backends", "lookup_backend", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "optimize_assert",
    "override_cudagraphs", "override_optimization_hint", "patch_dynamo_config", "register_backend", "replay",
    "reset", "run", "set_recursion_limit", "set_stance", "skip_frame", "step_unsupported",
    "substitute_in_graph",
]  # fmt: skip


def replay(filename: str) -> NoReturn:
    """Raises: NotImplementedError, because nothing is traced."""
    raise NotImplementedError("torch._dynamo.replay: weft does not trace programs")


def reset_code_caches() -> None:
    """Forget the records of all compiled functions."""
    reset()


def set_recursion_limit(limit: int) -> None:
    """Keep the limit of the tracer's recursion; nothing is traced.

    Raises: ValueError unless it is positive.
    """
    if limit < 1:
        raise ValueError("recursion limit must be greater or equal than 1")


def reset_recompile_user_contexts() -> Any:
    """Nothing: nothing is compiled again."""


__getattr__ = module_getattr(__name__, ("backends", "mutation_guard", "testing", "utils"))
