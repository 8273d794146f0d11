"""What scripts ask of PyTorch's compiler beyond `torch.compile`: settings, which are kept, and the class of its modules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ..compat.missing import module_getattr
from ..compiler import disable, is_compiling, reset
from ..nn import Module

__all__ = ["OptimizedModule", "config", "disable", "is_compiling", "reset"]

config = SimpleNamespace(suppress_errors=False, cache_size_limit=8, recompile_limit=8, verbose=False)


class OptimizedModule(Module):
    """What `torch.compile` makes of a module, which is its `_orig_mod`: it has that module's attributes and runs it."""

    def __init__(self, mod: Module):
        super().__init__()
        del self.training
        self._orig_mod = mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_modules" not in own or name in own or name == "_orig_mod" or "_orig_mod" not in own["_modules"]:
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if hasattr(self._orig_mod, "__len__"):
            return len(self._orig_mod)
        raise TypeError(f"object of type '{type(self._orig_mod).__name__}' has no len()")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self._orig_mod)]


__getattr__ = module_getattr(__name__)
