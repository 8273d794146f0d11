"""Tracebacks without weft's own frames, so that they end at the user's line, as PyTorch's do, whose inside is not Python.

`weft run` loads this file by its path when the interpreter starts (compat/startup), so it imports only the standard library.
"""

import os
import sys
from collections.abc import Callable, Iterator
from types import CodeType, TracebackType

# What the names of weft's files begin with. Code that weft writes at run time has names such as "<weft template>".
_OWN = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, "<weft ")
_LIBRARY = (os.path.dirname(os.__file__) + os.sep, "<frozen ")
_INSTALLED = os.sep + "site-packages" + os.sep

# Each is given an error before a report shows it, and may add notes to it.
before_showing: list[Callable[[BaseException], None]] = []


def is_own(code: CodeType) -> bool:
    """Whether this is code of weft.

    >>> import weft
    >>> is_own(weft.ones.__code__), is_own((lambda: None).__code__)
    (True, False)
    """
    return code.co_filename.startswith(_OWN)


def shows_all() -> bool:
    """Whether the user wants to see all frames: WEFT_TRACEBACK=1 in the environment."""
    return os.environ.get("WEFT_TRACEBACK") == "1"


def hide_in(error: BaseException) -> None:
    """Take weft's frames out of the tracebacks of `error` and of all errors that a report about it prints. `error` gets its notes first.

    Args:
        error: It keeps its frames if `shows_all()`, and if it has only frames of weft.

    >>> import weft
    >>> from unittest.mock import patch
    >>> try:
    ...     weft.ones(2) + weft.ones(3)
    ... except RuntimeError as problem:
    ...     with patch.dict(os.environ, WEFT_TRACEBACK=""):
    ...         hide_in(problem)
    ...     print(problem.__traceback__.tb_next)
    None
    """
    for note in before_showing:
        note(error)
    if shows_all():
        return
    todo: list[BaseException | None] = [error]
    seen = set()
    while todo:
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        shown = list(_shown(current.__traceback__))
        if shown:
            for outer, inner in zip(shown, [*shown[1:], None]):
                outer.tb_next = inner
            current.__traceback__ = shown[0]
        todo += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            todo += current.exceptions


def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print an uncaught exception without weft's frames."""
    hide_in(error)
    sys.__excepthook__(kind, error, error.__traceback__)


def _shown(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """The frames that are neither of weft nor of a function of Python's library that weft has called."""
    is_inside = False
    while traceback is not None:
        code = traceback.tb_frame.f_code
        is_inside = is_own(code) or (is_inside and _is_of_library(code.co_filename))
        if not is_inside:
            yield traceback
        traceback = traceback.tb_next


def _is_of_library(filename: str) -> bool:
    return filename.startswith(_LIBRARY) and _INSTALLED not in filename
