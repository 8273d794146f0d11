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
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = _hide(current.__traceback__)
        todo += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            todo += current.exceptions


def _hide(traceback: TracebackType | None) -> TracebackType | None:
    shown = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            shown.append(traceback)
        traceback = traceback.tb_next
    if not shown:
        return None
    for outer, inner in zip(shown, [*shown[1:], None]):
        outer.tb_next = inner
    return shown[0]
