"""Where calls come from, `torch._C._profiler.gather_traceback`; options of profiles, and ranges with arguments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from weft.autograd.event_recorder import Range
from weft.compat.missing import module_getattr

# Options that ask for what weft does not note.
_NOT_NOTED = frozenset(
    "profiler_metrics profiler_measure_per_kernel performance_events enable_cuda_sync_events adjust_profiler_step "
    "disable_external_correlation capture_overload_names record_python_gc_info expose_kineto_event_metadata "
    "custom_profiler_config adjust_timestamps trace_only".split()
)


class _ExperimentalConfig:
    """Options of a profile. Stacks are always `verbose`, and profiles always hold all threads.

    Raises: NotImplementedError for an option that asks for more.
    """

    def __init__(self, *, verbose: bool = False, profile_all_threads: bool = False, **options: Any):
        self.verbose, self.profile_all_threads = verbose, profile_all_threads
        for name, value in options.items():
            if name not in _NOT_NOTED:
                raise TypeError(f"_ExperimentalConfig has no option {name}")
            if value:
                raise NotImplementedError(f"_ExperimentalConfig({name}={value!r})")


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


__getattr__ = module_getattr(__name__)
