"""A context that tracks which modules are being called."""

from __future__ import annotations

import weakref
from typing import Any

from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context in which `parents` names the modules around what happens: "Global" and the path of each module.

    >>> import weft as torch
    >>> class Shown(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     _ = torch.nn.Sequential(Shown())(torch.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._in_backward = False

    @property
    def is_bw(self) -> bool:
        """Return whether a backward pass is under way."""
        return self._in_backward

    def _name(self, module: Any) -> str:
        if module not in self._known:
            self._known[module] = type(module).__name__
        name = self._known[module]
        for own, child in module.named_children():
            if child not in self._known:
                self._known[child] = f"{name}.{own}"
                self._name(child)
        return name

    def _enter_module(self, module: Any, inputs: Any) -> None:
        self.parents.add(self._name(module))

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        self.parents.discard(self._name(module))

    def __enter__(self) -> ModuleTracker:
        self.parents = {"Global"}
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *exception: Any) -> None:
        for handle in self._handles:
            handle.remove()
