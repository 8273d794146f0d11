"""A context that tracks which modules are being called."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ..autograd.hooks import register_multi_grad_hook, running
from ..core.pytree import tree_leaves
from ..core.tensor import Tensor
from ..nn.module_names import ModuleNames
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

__all__ = ["ModuleTracker"]


class ModuleTracker:
    """A context in which `parents` names the modules around what happens: "Global" and the path of each module.

    In a backward pass, a module is entered with the first gradient of its outputs, and left when the gradients of its inputs are
    computed. If no input requires a gradient, it is left at the end of the pass, as in PyTorch.

    >>> import weft as torch
    >>> class Shown(torch.nn.Module):
    ...     def forward(self, x):
    ...         print(sorted(tracker.parents))
    ...         return x
    >>> with ModuleTracker() as tracker:
    ...     _ = torch.nn.Sequential(Shown())(torch.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self._name = ModuleNames()
        self._handles: list[Any] = []
        self._forward: set[str] = set()
        self._backward: weakref.WeakKeyDictionary[Any, set[str]] = weakref.WeakKeyDictionary()  # of each pass

    @property
    def parents(self) -> set[str]:
        """The names of the modules that run, or whose backward runs, and "Global"."""
        names = {"Global"} | self._forward
        return names if running.now is None else names | self._backward.get(running.now, set())

    @property
    def is_bw(self) -> bool:
        """Return whether a backward pass is under way."""
        return running.now is not None

    def _enter_module(self, module: Any, inputs: Any) -> None:
        name = self._name(module)
        self._forward.add(name)
        self._in_backward(inputs, "all", lambda names: names.discard(name))

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        name = self._name(module)
        self._forward.discard(name)
        self._in_backward(output, "any", lambda names: names.add(name))

    def _in_backward(self, values: Any, which: str, change: Callable[[set[str]], None]) -> None:
        """Change the names of a backward pass when it has computed all (or any) gradients of the tensors among the values."""
        tensors = [x for x in tree_leaves(values) if isinstance(x, Tensor) and x.requires_grad]

        def changed(grads: Any) -> None:
            change(self._backward.setdefault(running.now, set()))

        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, changed, mode=which))

    def __enter__(self) -> ModuleTracker:
        self._forward.clear()
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *exception: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
