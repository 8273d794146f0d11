"""Where calls come from: `torch._C._profiler.gather_traceback`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from weft.compat.missing import module_getattr


class CapturedTraceback:
    """The calls that led to a place, the innermost first: for each the name, the file and the line."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, str, int]] = []
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            self.frames.append((code.co_name, code.co_filename, frame.f_lineno or code.co_firstlineno))
            frame = frame.f_back  # type: ignore[assignment]


def gather_traceback(python: bool, script: bool, cpp: bool) -> CapturedTraceback:
    """The calls that led here. There are only Python's; weft has no frames of TorchScript and C++."""
    return CapturedTraceback()


def symbolize_tracebacks(to_symbolize: Sequence[CapturedTraceback]) -> list[list[dict[str, str | int]]]:
    """The calls of each traceback as dictionaries with the keys name, filename and line."""
    return [
        [{"name": name, "filename": filename, "line": line} for name, filename, line in each.frames]
        for each in to_symbolize
    ]


__getattr__ = module_getattr(__name__)
