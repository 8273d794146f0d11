"""Warnings that a program sees once."""

from __future__ import annotations

import functools
import warnings


@functools.cache
def warn_once(message: str, stacklevel: int = 2) -> None:
    """Warn the first time; `stacklevel` counts from whoever calls this, as in `warnings.warn`."""
    # functools.cache is written in C and adds no frame.
    warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
