"""`torch._dynamo.optimize` and `OptimizedModule`, the result of `torch.compile` for a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..compat.missing import module_getattr
from ..nn.module import Module
from ._compiled import Compiled


class OptimizedModule(Module):
    """What `torch.compile` makes of a module, which is its `_orig_mod`: it has that module's attributes and runs it."""

    def __init__(self, mod: Module, fullgraph: bool = False, limit: int | None = None):
        super().__init__()
        del self.training
        self._orig_mod = mod
        self.__dict__["_compiled"] = Compiled(mod, fullgraph, limit)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

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


def is_dynamo_supported() -> bool:
    """Whether `torch.compile` runs here."""
    return True


def check_if_dynamo_supported() -> None:
    """Nothing: `torch.compile` can be called."""


def innermost_fn(fn: Callable, unaltered_fn_attr: str = "_torchdynamo_orig_callable") -> Callable:
    """The function that wrappers of the compiler lead to."""
    while hasattr(fn, unaltered_fn_attr):
        fn = getattr(fn, unaltered_fn_attr)
    return fn


def optimize(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that does what `torch.compile` does."""
    from . import compile

    return compile


optimize_assert = optimize


def explain(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> NoReturn:
    """Raises: NotImplementedError, because nothing is traced."""
    raise NotImplementedError(
        "torch._dynamo.explain: weft does not trace programs; torch.fx.symbolic_trace gives a graph"
    )


def export(f: Callable, *extra_args: Any, **extra_kwargs: Any) -> NoReturn:
    """Raises: NotImplementedError, because nothing is traced."""
    raise NotImplementedError("torch._dynamo.export: weft does not trace bytecode; use torch.export.export")


__getattr__ = module_getattr(__name__)
