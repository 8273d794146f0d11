"""`torch.autograd.profiler`: the wall time of the operators of a program, and of ranges with names.

While a profile is open, it sees in all threads the ranges that `record_function` marks, and the operators that
`profiler/operators.py` reports. docs/profiling.md says what the times mean.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NoReturn

from ..compat.missing import module_getattr
from ..core.device import is_present
from .event_recorder import Options, Range, Recorder
from .profiler_util import USER_SCOPE, EventList, FunctionEvent, FunctionEventAvg, MemRecordsAcc, trace_events
from .questions import kineto_available as kineto_available
from .ranges import profiling

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


def _profiler_enabled() -> bool:
    """Whether a profile is open."""
    return profiling.on


class record_function(Range, contextlib.ContextDecorator):  # noqa: N801 (PyTorch's name)
    """A range with a name, as a context or a decorator; a profile that is open notes its wall time.

    >>> import weft as torch
    >>> with torch.autograd.profiler.profile() as prof:
    ...     with torch.autograd.profiler.record_function("outer"):
    ...         pass
    >>> [event.name for event in prof.function_events]
    ['outer']
    """

    def __init__(self, name: str, args: str | None = None):
        super().__init__(name, scope=USER_SCOPE, is_user_annotation=True, activity_type="user_annotation")
        self.args = args


# Options of `torch._C._profiler._ExperimentalConfig` that ask for what weft does not note.
_NOT_NOTED = (
    "profiler_metrics profiler_measure_per_kernel performance_events enable_cuda_sync_events capture_overload_names "
    "expose_kineto_event_metadata custom_profiler_config"
).split()


def _checked(config: Any) -> Any:
    for name in _NOT_NOTED:
        if getattr(config, name, None):
            raise NotImplementedError(f"profile: _ExperimentalConfig({name}={getattr(config, name)!r})")
    return config


class profile:  # noqa: N801
    """Within this context, operators and the ranges that `record_function` marks are noted with their wall times.

    record_shapes, with_stack, profile_memory, with_flops: as in `torch.profiler.profile`. with_modules has no effect.
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
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        self.enabled = enabled
        self.entered = False
        self.use_device = "cuda" if use_cuda else use_device
        self.record_shapes, self.with_flops, self.profile_memory = record_shapes, with_flops, profile_memory
        self.with_stack, self.with_modules, self.acc_events = with_stack, with_modules, acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.experimental_config = _checked(experimental_config)
        self.trace_id = ""
        self._function_events: EventList | None = None
        self._recorder: Recorder | None = None
        self._timeline: Any = None  # of memory, when the profile has ended

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
        recorder = Recorder(
            Options(
                self.record_shapes,
                self.with_stack,
                self.profile_memory,
                self.with_flops,
                collections=getattr(self.experimental_config, "record_python_gc_info", False),
            )  # fmt: skip
        )
        recorder.start()
        self._recorder = recorder
        self.trace_id = self.create_trace_id()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        if self.enabled and self._recorder is not None:
            found = self._recorder.stop()
            self._timeline = self._recorder.timeline
            earlier = self._function_events if self.acc_events and self._function_events else []
            found[:0] = earlier
            self._function_events = found
            self._recorder = None

    def create_trace_id(self) -> str:
        return self.custom_trace_id_callback() if self.custom_trace_id_callback else self.default_trace_id()

    def default_trace_id(self) -> str:
        import uuid

        return uuid.uuid4().hex.upper()

    def config(self, create_trace_id: bool = False) -> NoReturn:
        raise NotImplementedError(
            "autograd.profiler.profile.config: the configuration of PyTorch's profiler in C++"
        )

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Stop noting events, or go on."""
        if self._recorder is not None:
            self._recorder.resume() if enabled else self._recorder.pause()

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

    trace = {"schemaVersion": 1, "displayTimeUnit": "ms", **metadata, "traceName": str(path)}
    text = json.dumps({**trace, "traceEvents": trace_events(events)}, default=str)
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt") as file:
            file.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)


class emit_itt:  # noqa: N801
    """PyTorch marks operators for Intel's tools here, if it was built with ITT. weft has no such marks.

    Raises: RuntimeError when it is entered and enabled, as PyTorch without ITT.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self) -> Any:
        if self.enabled:
            raise RuntimeError("Can't use ITT profiler - PyTorch was compiled without ITT")

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Nothing was begun."""


class emit_nvtx:  # noqa: N801
    """PyTorch marks operations for NVIDIA's tools here, which takes CUDA. weft has no such marks; `torch.cuda.nvtx.range` marks parts of programs.

    Raises: AssertionError when it is entered and enabled without a CUDA device, as PyTorch's CPU build does; NotImplementedError with one.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled, self.entered, self.record_shapes = enabled, False, record_shapes

    def __enter__(self) -> Any:
        if self.enabled and not is_present("cuda"):
            raise AssertionError("Torch not compiled with CUDA enabled")
        if self.enabled:
            raise NotImplementedError(
                "emit_nvtx: weft does not mark operations; mark parts of the program with torch.cuda.nvtx.range"
            )

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        """Nothing was begun."""


def load_nvprof(path: str) -> EventList:
    """The events of a file that nvprof wrote."""
    events = EventList(parse_nvprof_trace(path))
    events._populate_cpu_children()
    return events


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
    import sqlite3

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


_missing = module_getattr(__name__)


def __getattr__(name: str) -> Any:
    """`_is_profiler_enabled`, which libraries read before they mark ranges."""
    return profiling.on if name == "_is_profiler_enabled" else _missing(name)
