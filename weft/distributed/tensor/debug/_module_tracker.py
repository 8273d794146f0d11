"""Which module runs, forward or backward, and the parameters of the modules that ran."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from ....autograd.hooks import running
from ....core.tensor import Tensor
from ....nn.module_names import ModuleNames
from ....nn.modules.module import register_module_forward_pre_hook, register_module_full_backward_pre_hook
from .._api import DTensor

ROOT = "Global"


class _Call(NamedTuple):
    """A call of a module that is under way, and the backward pass that recomputes it, if one does."""

    name: str
    backward: Any


class CommModuleTracker:
    """A context in which `name` is the innermost module that runs; "Global" outside of modules.

    A backward pass enters a module with the gradients of its outputs, and stays there until it enters another one. So collectives between two modules belong to
    the first of these, as in PyTorch. A module that a backward pass computes again (activation checkpointing) is the innermost one meanwhile.
    """

    def __init__(self) -> None:
        self._name_of = ModuleNames()
        self._handles: list[Any] = []
        self._start()

    def _start(self) -> None:
        """Forget all modules."""
        self._calls: list[_Call] = []
        self._tracked: weakref.WeakSet[Any] = weakref.WeakSet()  # the modules whose calls end with a hook
        self._entered: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # by each pass
        self.module_parameters_dict: dict[str, dict[str, Tensor]] = {}
        self.sharding_dict: dict[str, Any] = {}
        self.module_helper_dict: dict[str, dict[str, Any]] = {ROOT: {"depth": 0}}
        self.module_parents_dict: dict[str, set[str]] = {ROOT: set()}
        self.parent_dict: dict[str, list[str]] = {}

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is under way."""
        return running.now is not None

    @property
    def activation_checkpointing(self) -> bool:
        """Whether a backward pass computes a module again."""
        return self.is_bw and bool(self._calls) and self._calls[-1].backward is running.now

    @property
    def name(self) -> str:
        """The innermost module that runs."""
        if self.is_bw and not self.activation_checkpointing and running.now in self._entered:
            return self._entered[running.now]
        return self._calls[-1].name if self._calls else ROOT

    @property
    def parents(self) -> set[str]:
        """The modules that are being called, and "Global"."""
        return {ROOT, *(each.name for each in self._calls)}

    def print_paramater_info(self) -> None:
        """Print the parameters of the modules that ran."""
        print(self.module_parameters_dict)

    def print_sharding_info(self) -> None:
        """Print the placements of the parameters that are DTensors."""
        for key, placements in self.sharding_dict.items():
            print(f"{key}: {placements}")

    def _begin(self, module: Any, inputs: Any) -> None:
        name, outer = self._name_of(module), self.name
        self._calls.append(_Call(name, running.now))
        # This hook is the last one, so hooks of the program belong to the module.
        if module not in self._tracked:
            self._tracked.add(module)
            self._handles.append(module.register_forward_hook(self._end, always_call=True))
        if not self.is_bw:
            self.parent_dict.setdefault(outer, []).append(name)
            self.module_parents_dict.setdefault(name, self.parents)
            self._describe(module, name)

    def _describe(self, module: Any, name: str) -> None:
        kind = str(type(module)).replace("<", "").replace(">", "")
        found = self.module_helper_dict.setdefault(name, {})
        found |= {"module_type": kind, "depth": len(self.parents) - 1}
        for own, parameter in module.named_parameters(recurse=False):
            self.module_parameters_dict.setdefault(name, {})[own] = parameter.data
            if isinstance(parameter, DTensor):
                self.sharding_dict[f"{name}.{own}"] = parameter.placements
                found.setdefault("parameters", {})[own] = str(parameter.placements)

    def _end(self, module: Any, inputs: Any, output: Any) -> None:
        self._calls.pop()

    def _enter_backward(self, module: Any, gradients: Any) -> None:
        self._entered[running.now] = self._name_of(module)

    def __enter__(self) -> CommModuleTracker:
        self._start()
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_full_backward_pre_hook(self._enter_backward),
        ]
        return self

    def __exit__(self, *exception: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
