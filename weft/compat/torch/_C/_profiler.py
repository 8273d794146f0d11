"""Where calls come from, `torch._C._profiler.gather_traceback`; options of profiles, and ranges with arguments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.autograd.event_recorder import Range


@dataclass
class _ExperimentalConfig:
    """Further options of a profile, which raises NotImplementedError for those that ask for what weft does not note.

    Stacks are always verbose, profiles hold all threads, steps and times need no adjusting, and no event has a correlation.
    """

    profiler_metrics: Sequence[str] = ()
    profiler_measure_per_kernel: bool = False
    verbose: bool = False
    performance_events: Sequence[str] = ()
    enable_cuda_sync_events: bool = False
    adjust_profiler_step: bool = False
    disable_external_correlation: bool = False
    profile_all_threads: bool = False
    capture_overload_names: bool = False
    record_python_gc_info: bool = False
    expose_kineto_event_metadata: bool = False
    custom_profiler_config: str = ""
    adjust_timestamps: bool = False
    trace_only: bool = False


class _RecordFunctionFast(Range):
    """A range with arguments, as libraries put around kernels that they launch themselves."""

    def __init__(
        self, name: str, input_values: Sequence[Any] | None = None, keyword_values: dict | None = None
    ):
        super().__init__(name, inputs=tuple(input_values or ()), keywords=keyword_values)


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
