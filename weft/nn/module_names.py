"""Names of modules for contexts that track calls."""

from __future__ import annotations

import weakref
from typing import Any


class ModuleNames:
    """Called with a module, gives its name: that of its class for the first module that is asked for, paths such as `Sequential.0` for modules within it.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    >>> names = ModuleNames()
    >>> names(model), names(model[0])
    ('Sequential', 'Sequential.0')
    """

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    def __call__(self, module: Any) -> str:
        if module not in self._known:
            self._known[module] = type(module).__name__
        name = self._known[module]
        for own, child in module.named_children():
            if child not in self._known:
                self._known[child] = f"{name}.{own}"
                self(child)
        return name
