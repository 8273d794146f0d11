"""GraphModules that are compiled when they are first called."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .graph_module import GraphModule

_use_lazy_graph_module_flag = False
_force_skip_lazy_graph_module_flag = False


@contextlib.contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """Inside, no GraphModule is lazy."""
    global _force_skip_lazy_graph_module_flag
    outer, _force_skip_lazy_graph_module_flag = _force_skip_lazy_graph_module_flag, True
    try:
        yield
    finally:
        _force_skip_lazy_graph_module_flag = outer


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Inside, passes make lazy GraphModules, if `should_use`."""
    global _use_lazy_graph_module_flag
    outer = _use_lazy_graph_module_flag
    _use_lazy_graph_module_flag = should_use and not _force_skip_lazy_graph_module_flag
    try:
        yield
    finally:
        _use_lazy_graph_module_flag = outer


def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _use_lazy_graph_module_flag else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: Any = None, **kwargs: Any) -> GraphModule:
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


class _LazyGraphModule(GraphModule):
    """A GraphModule whose `recompile` only notes that it is to be done."""

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> _LazyGraphModule:
        if isinstance(gm, _LazyGraphModule):
            return gm
        return _LazyGraphModule(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Compile now, if that is still to be done."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def real_recompile(self) -> None:
        if self._needs_recompile():
            self._real_recompile()

    @classmethod
    def _needs_recompile(cls) -> bool:
        return cls.forward is cls._lazy_forward

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        return self(*args, **kwargs)

    forward = _lazy_forward

    def _real_recompile(self) -> Any:
        return super().recompile()

    def recompile(self) -> None:  # type: ignore[override]
        type(self).forward = _LazyGraphModule._lazy_forward  # type: ignore[method-assign]

    @property
    def code(self) -> str:
        self.real_recompile()
        return super().code

    def __reduce__(self) -> Any:
        self.real_recompile()
        return super().__reduce__()

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()
