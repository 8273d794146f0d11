"""Tracebacks as under `python` with PyTorch, whose inside is not Python: without weft's own frames.

Like binding.py this is loaded by its path at start-up, so it imports only the standard library.
"""

import os
import sys
from types import TracebackType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print an uncaught exception; all frames with WEFT_TRACEBACK=1 in the environment."""
    if os.environ.get("WEFT_TRACEBACK") != "1":
        _hide_in(error)
        traceback = _hide(traceback)
    sys.__excepthook__(kind, error, traceback)


def _hide_in(error: BaseException) -> None:
    """Hide weft's frames in `error` and in all that its report goes on to print."""
    todo: list[BaseException | None] = [error]
    seen = set()
    while todo:
        error_or_none = todo.pop()
        if error_or_none is None or id(error_or_none) in seen:
            continue
        seen.add(id(error_or_none))
        error_or_none.__traceback__ = _hide(error_or_none.__traceback__)
        todo += [error_or_none.__cause__, error_or_none.__context__]
        if isinstance(error_or_none, BaseExceptionGroup):
            todo += error_or_none.exceptions


def _hide(traceback: TracebackType | None) -> TracebackType | None:
    shown = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            shown.append(traceback)
        traceback = traceback.tb_next
    for outer, inner in zip(shown, [*shown[1:], None], strict=True):
        outer.tb_next = inner
    return shown[0] if shown else None
