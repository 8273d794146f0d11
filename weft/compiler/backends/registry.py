"""The backends of `torch.compile`, by name. Programs run unchanged with every backend that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...compat.missing import module_getattr
from ..errors import InvalidBackend

_registered: dict[str, Callable] = {}
_tags: dict[str, tuple[str, ...]] = {}
_BUILT_IN = ("cudagraphs", "inductor", "openxla", "tvm")
_DEBUG = ("aot_eager", "eager")


def register_backend(
    compiler_fn: Callable | None = None, name: str | None = None, tags: Sequence[str] = ()
) -> Callable:
    """Keep a backend under a name, or decorate one. It is never called, because nothing is traced.

    Raises: RuntimeError if there is one of its name.
    """
    if compiler_fn is None:
        return lambda compiler_fn: register_backend(compiler_fn, name, tags)
    name = name or compiler_fn.__name__
    if name in _registered:
        raise RuntimeError(f"Backend {name} is already registered.")
    _registered[name], _tags[name] = compiler_fn, tuple(tags)
    return compiler_fn


def list_backends(exclude_tags: Sequence[str] | None = ("debug", "experimental")) -> list[str]:
    """The names of the backends."""
    excluded = set(exclude_tags or ())
    names = [*_BUILT_IN, *(() if "debug" in excluded else _DEBUG)]
    return sorted([*names, *(each for each in _registered if excluded.isdisjoint(_tags[each]))])


def lookup_backend(compiler_fn: Any) -> Callable:
    """The backend of a name. PyTorch's backends return the graph's function unchanged.

    Raises: InvalidBackend if there is none.
    """
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn in _registered:
        return _registered[compiler_fn]
    if compiler_fn not in (*_BUILT_IN, *_DEBUG):
        raise InvalidBackend(name=compiler_fn)
    return _as_it_is


def _as_it_is(graph_module: Any, example_inputs: Any, **kwargs: Any) -> Any:
    return graph_module.forward


__getattr__ = module_getattr(__name__)
