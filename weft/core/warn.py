"""Warnings that are issued once, and the source line to which warnings refer."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from .tracebacks import is_own

# Modules of Python's library that call weft for the user, as in `with torch.autocast("cpu"):`.
_BETWEEN = ("contextlib", "functools")


class _Issued(threading.local):
    count = 0
    refuse: Callable[[], NoReturn] | None = None


# `issued.count` is the number of warnings that this thread has issued. A call that warns must warn again whenever it is repeated,
# so `autograd/replays.py` leaves it to Python. `issued.refuse` raises an error in place of a warning: torch.compile runs a function that
# warns again, so the warning of its recording would be one too many.
issued = _Issued()


class _Once:
    """Issues a warning for the user's line, but only the first time, or each time after `torch.set_warn_always(True)`."""

    def __init__(self) -> None:
        self.always = False
        self._issued: set[str] = set()

    def __call__(self, message: str) -> None:
        if self.always or message not in self._issued:
            self._issued.add(message)
            warnings.warn(message, UserWarning, stacklevel=user_level())

    def forget(self) -> None:
        """Let each warning come once more."""
        self._issued.clear()


warn_once = _Once()


def user_level() -> int:
    """The `stacklevel` for `warnings.warn` in the calling function, so that the warning refers to the user's line.

    Counts the warning in `issued`.
    """
    if issued.refuse is not None:
        issued.refuse()
    issued.count += 1
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_inner(frame):
        # warnings.warn does not count the frames of the import system, either.
        level, frame = level + (not _imports(frame)), frame.f_back
    return level


def user_line() -> str | None:
    """The file and line of the user that led here, such as "train.py:12"; None in a thread that weft has started."""
    frame = sys._getframe(1)
    while _is_inner(frame):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return (
        None
        if frame.f_globals.get("__name__") == "threading"
        else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    )


def _is_inner(frame: FrameType) -> bool:
    return is_own(frame.f_code) or frame.f_globals.get("__name__") in _BETWEEN or _imports(frame)


def _imports(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith("<frozen importlib")
