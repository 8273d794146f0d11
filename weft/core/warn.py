"""Warnings that a program sees once, and where they point to."""

from __future__ import annotations

import functools
import sys
import warnings

# The names of weft's modules begin with "torch" where `import torch` is bound to weft.
_INNER = ("weft.", "torch.")


@functools.cache
def warn_once(message: str) -> None:
    """Warn the first time, of the user's line."""
    warnings.warn(message, UserWarning, stacklevel=user_level())


def user_level() -> int:
    """The `stacklevel` with which a warning of the function that calls this points to the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INNER):
        level, frame = level + 1, frame.f_back
    return level
