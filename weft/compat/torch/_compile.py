"""`torch._compile`: functions that `torch.compile` leaves as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _disable_dynamo(fn: Callable[..., Any] | None = None, recursive: bool = True) -> Any:
    """`torch.compiler.disable`; a decorator if no function is given."""
    from weft import compiler  # loaded when first used

    return compiler.disable(fn, recursive)
