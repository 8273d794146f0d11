"""`torch.autograd.profiler`: the wall time of named ranges of a program.

A profile sees the ranges that `record_function` marks while it is open, in all threads. It does not see single operations.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NoReturn
from uuid import uuid4

from ..compat.missing import module_getattr
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, MemRecordsAcc, next_id, trace_events

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "parse_nvprof_trace",
    "profile",
    "record_function",
]

_is_profiler_enabled = False  # libraries read it before they mark ranges
_open: list[Recorder] = []  # the profiles that are open


class Recorder:
    """Collects the ranges of one profile."""

    def __init__(self) -> None:
        self.events: list[FunctionEvent] = []
        self._byte_offset = time.perf_counter_ns()

    def since_start(self) -> float:
        """Microseconds since the profile began."""
        return (time.perf_counter_ns() - self._byte_offset) / 1000

    def start(self) -> None:
        """Start to collect the ranges that open from now on."""
        global _is_profiler_enabled
        if _open:
            raise RuntimeError("Profiler is already enabled on this thread.")
        self._byte_offset = time.perf_counter_ns()
        _open.append(self)
        _is_profiler_enabled = True

    def stop(self) -> EventList:
        """Stop, and return the ranges that were closed, in the order in which they began."""
        global _is_profiler_enabled
        if self in _open:
            _open.remove(self)
        _is_profiler_enabled = bool(_open)
        return EventList(sorted(self.events, key=lambda event: event.time_range.start))


class _Ranges(threading.local):
    """The ranges that are open in this thread, with the profile that each belongs to."""

    def __init__(self) -> None:
        self.open: list[tuple[Recorder, FunctionEvent]] = []


_ranges = _Ranges()


class record_function(contextlib.ContextDecorator):  # noqa: N801 (PyTorch's name)
    """A range with a name, as a context or a decorator; a profile that is open notes its wall time.

    >>> import weft as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("outer"):
    ...         pass
    >>> [event.name for event in prof.function_events]
    ['outer']
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._range: tuple[Recorder, FunctionEvent] | None = None

    def __enter__(self) -> record_function:
        self._range = None
        if _open:
            recorder = _open[-1]
            began = recorder.since_start()
            thread = threading.get_ident()
            event = FunctionEvent(
                next_id(), self.name, thread, began, began, "", None, [], [], is_user_annotation=True
            )
            if _ranges.open and _ranges.open[-1][0] is recorder:
                parent = _ranges.open[-1][1]
                parent.append_cpu_child(event)
                event.set_cpu_parent(parent)
            self._range = recorder, event
            _ranges.open.append(self._range)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self._range is None:
            return
        recorder, event = self._range
        event.time_range.end = recorder.since_start()
        if self._range in _ranges.open:
            del _ranges.open[_ranges.open.index(self._range) :]
        if recorder in _open:
            recorder.events.append(event)
        elif event.cpu_parent is not None:  # the profile ended before the range did
            event.cpu_parent.cpu_children.remove(event)
        self._range = None


class profile:  # noqa: N801
    """Within this context, the ranges that `record_function` marks are noted with their wall times.

    record_shapes, with_stack, profile_memory and with_flops are about operations, which are not noted: they have no effect.
    use_device other than the CPU raises when the context is entered.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: dict | None = None,
    ):
        self.enabled = enabled
        self.entered = False
        self.use_device = "cuda" if use_cuda else use_device
        self.record_shapes, self.with_flops, self.profile_memory = record_shapes, with_flops, profile_memory
        self.with_stack, self.with_modules, self.acc_events = with_stack, with_modules, acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        self._function_events: EventList | None = None
        self._recorder: Recorder | None = None

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if self.use_device not in (None, "cpu"):
            raise NotImplementedError(
                f"autograd.profiler.profile(use_device={self.use_device!r}): weft measures the time of the CPU"
            )
        self._start_trace()
        self.entered = True
        return self

    def _start_trace(self) -> None:
        recorder = Recorder()
        recorder.start()
        self._recorder = recorder
        self.trace_id = self.create_trace_id()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if self.enabled and self._recorder is not None:
            found = self._recorder.stop()
            earlier = self._function_events if self.acc_events and self._function_events else []
            self._function_events = EventList([*earlier, *found])
            self._recorder = None

    def create_trace_id(self) -> str:
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    def default_trace_id(self) -> str:
        return uuid4().hex.upper()

    def config(self, create_trace_id: bool = False) -> NoReturn:
        raise NotImplementedError(
            "autograd.profiler.profile.config: the configuration of PyTorch's profiler in C++"
        )

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Stop noting ranges, or go on."""
        if self._recorder is None:
            return
        if enabled and self._recorder not in _open:
            _open.append(self._recorder)
        elif not enabled and self._recorder in _open:
            _open.remove(self._recorder)

    @property
    def function_events(self) -> EventList:
        return self._events()

    def _events(self) -> EventList:
        if self._function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._function_events

    @property
    def self_cpu_time_total(self) -> float:
        return self._events().self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        return self._events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        return self._events().total_average()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        return self._events().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header,
            top_level_events_only,
        )  # fmt: skip

    def export_chrome_trace(
        self, path: str, metadata: dict | None = None, use_python_export: bool = False
    ) -> None:
        """Write the ranges as JSON for chrome://tracing and Perfetto; compressed if the name ends in .gz."""
        write_trace(path, self._events(), metadata or {})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._events().export_stacks(path, metric)

    def __repr__(self) -> str:
        return (
            "<unfinished torch.autograd.profile>"
            if self._function_events is None
            else repr(self._function_events)
        )

    def __str__(self) -> str:
        return (
            "<unfinished torch.autograd.profile>"
            if self._function_events is None
            else str(self._function_events)
        )


def write_trace(path: str, events: EventList, metadata: dict) -> None:
    """Events and metadata as a file for chrome://tracing and Perfetto."""
    import gzip
    import json

    text = json.dumps(
        {"schemaVersion": 1, **metadata, "traceName": str(path), "traceEvents": trace_events(events)}
    )
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)


class emit_itt:  # noqa: N801
    """PyTorch marks operations for Intel's tools here; weft has no such marks, and only refuses to nest."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("ITT annotation context manager is not reentrant")
        self.entered = True
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Nothing was begun."""


class emit_nvtx:  # noqa: N801
    """PyTorch marks operations for NVIDIA's tools here, which takes CUDA."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self) -> Any:
        if self.enabled:
            raise AssertionError("Torch not compiled with CUDA enabled")

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Nothing was begun."""


def load_nvprof(path: str) -> EventList:
    """The events of a file that nvprof wrote."""
    return EventList(parse_nvprof_trace(path))


class EnforceUnique:
    """Raises an error if a key is seen more than once."""

    def __init__(self) -> None:
        self.seen: set[tuple] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """The ranges of a file that nvprof wrote under `emit_nvtx`, without the kernels that they started."""
    connection = sqlite3.connect(path)
    try:
        strings = dict(connection.execute("SELECT _id_ as id, value FROM StringTable"))
        rows = connection.execute(
            "SELECT start.id, start.name, start.timestamp, end.timestamp FROM CUPTI_ACTIVITY_KIND_MARKER AS start INNER JOIN "
            "CUPTI_ACTIVITY_KIND_MARKER AS end ON start.id = end.id WHERE start.name != 0 AND end.name = 0"
        )
        return [
            FunctionEvent(each, strings[name], 0, start, end, node_id=0) for each, name, start, end in rows
        ]
    finally:
        connection.close()


class KinetoStepTracker:
    """The number of the training step, which profilers and optimizers count each for themselves; the highest is valid."""

    _current_step = 0
    _step_dict: defaultdict[str, int] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        return cls._current_step


def kineto_available() -> bool:
    """False, because weft does not use Kineto, PyTorch's tracing library."""
    return False


__getattr__ = module_getattr(__name__)
