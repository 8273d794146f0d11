"""Warnings that are issued once, and the source line to which warnings refer."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
from collections.abc import Callable
from typing import NoReturn

# Under `weft run`, the names of weft's modules begin with "torch".
_INNER = ("weft.", "torch.")


class _Issued(threading.local):
    count = 0
    refuse: Callable[[], NoReturn] | None = None


# `issued.count` is the number of warnings that this thread has issued. A call that warns must warn again whenever it is repeated,
# so `autograd/replays.py` leaves it to Python. `issued.refuse` raises an error in place of a warning: torch.compile runs a function that
# warns again, so the warning of its recording would be one too many.
issued = _Issued()


@functools.cache
def warn_once(message: str) -> None:
    """Issue a warning for the user's line, but only the first time."""
    warnings.warn(message, UserWarning, stacklevel=user_level())


def user_level() -> int:
    """The `stacklevel` for `warnings.warn` in the calling function, so that the warning refers to the user's line.

    Counts the warning in `issued`.
    """
    if issued.refuse is not None:
        issued.refuse()
    issued.count += 1
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INNER):
        level, frame = level + 1, frame.f_back
    return level
