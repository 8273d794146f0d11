"""`strict_mode`: a function that PyTorch's export takes as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def strict_mode(callable: Callable, operands: Any) -> Any:  # noqa: A002 (PyTorch's name)
    """`callable(*operands)`."""
    return callable(*operands)
