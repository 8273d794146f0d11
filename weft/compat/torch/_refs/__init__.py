"""`torch._refs`: PyTorch's operations as Python functions. All of weft's are, so these are weft's public functions themselves."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from weft.compat.missing import module_getattr
from weft.core.dtype import DType
from weft.core.names import ROOT
from weft.core.tensor import Tensor
from weft.families.reduce import dims_of


def references(module: str, home: str, *submodules: str) -> Callable[[str], Any]:
    """A `__getattr__` for the module `module` of references of the functions of `home`, with these submodules."""
    missing = module_getattr(module, submodules)

    def __getattr__(name: str) -> Any:
        if not name.startswith("__") and name not in submodules:
            namespace = importlib.import_module(home)
            # Some are functions here and only methods elsewhere: `_refs.expand(a, *sizes)`.
            for owner in (namespace, namespace.Tensor) if home == ROOT else (namespace,):
                found = getattr(owner, name, None)
                if found is not None:
                    return found.fget if isinstance(found, property) else found  # `_refs.T(a)`
        return missing(name)

    return __getattr__


def _drawn(name: str) -> Callable[..., Any]:
    """The function that draws into a new tensor what the method in place draws into its own."""

    def function(a: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(a.clone(), f"{name}_")(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


def prod(a: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product over `dim`: an int, several, or all."""
    if not a.dim():
        return a.prod(dtype=dtype)
    for each in sorted(dims_of(dim, a.dim(), "prod"), reverse=True):
        a = a.prod(each, keepdim, dtype=dtype)
    return a


cauchy, exponential, geometric, log_normal = map(_drawn, ("cauchy", "exponential", "geometric", "log_normal"))
__getattr__ = references(__name__, ROOT, "_conversions", "fft", "linalg", "nn", "special")
