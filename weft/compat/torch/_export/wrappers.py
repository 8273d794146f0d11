"""`torch._export.wrappers`: constructors of classes of tensors that exported programs may call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mark_subclass_constructor_exportable_experimental(
    constructor_subclass: Callable[..., Any],
) -> Callable[..., Any]:
    """The constructor itself. `torch.export` of weft records what it computes, and needs no mark.

    Raises: RuntimeError for functions that are no `__init__`.
    """
    if getattr(constructor_subclass, "__name__", None) != "__init__":
        raise RuntimeError(
            "torch._export.wrappers.mark_constructor_exportable_experimental can only be applied on subclass tensor.__init__"
        )
    return constructor_subclass
