"""Creates modules without initial values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..module import Module


def skip_init(module_cls: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return a module whose parameters and buffers are uninitialised, made without computing initial values.

    Raises: RuntimeError if the class is not a Module or takes no `device`.

    >>> import weft as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
