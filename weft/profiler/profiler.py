"""Profiles with a schedule: which steps of a training loop are observed, and what becomes of the results."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ..autograd import profiler as ranges
from ..autograd.profiler_util import EventList
from ..core.warn import user_level
from . import ProfilerActivity

__all__ = [
    "ExecutionTraceObserver", "ProfilerAction", "profile", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip


def supported_activities() -> set[ProfilerActivity]:
    """What can be observed: the processor."""
    return {ProfilerActivity.CPU}


class ProfilerAction(enum.Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to what is done in it: `wait` steps nothing, then `warmup`, then `active` ones.

    That `repeat` times, or for ever if it is 0, after `skip_first` steps. skip_first_wait: not 0 to leave out the first wait.

    >>> from weft.profiler import schedule
    >>> [schedule(wait=1, warmup=1, active=2, repeat=1)(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} "
            f"(need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """A function for `on_trace_ready` that writes a trace into a folder, for TensorBoard's plugin."""

    def handle(prof: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip
        prof.export_chrome_trace(os.path.join(dir_name, name), use_python_export)

    return handle


def _activities(given: Iterable[Any]) -> set[ProfilerActivity]:
    activities = list(given)
    if any(isinstance(each, dict) for each in activities):
        raise NotImplementedError(
            "profile(activities=...): the types of events of an activity cannot be chosen"
        )
    others = [each.name for each in activities if each is not ProfilerActivity.CPU]
    if others:
        names = " and ".join(others)
        warnings.warn(
            f"profile: only the CPU has events, so there are none of {names}", stacklevel=user_level()
        )
    return set(activities)


class _KinetoProfile:
    """A profile that its user starts and stops. The arguments are those of `profile`."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ):
        self.activities = supported_activities() if activities is None else _activities(activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.with_flops, self.with_modules, self.acc_events = with_flops, with_modules, acc_events
        self.experimental_config = experimental_config
        self.post_processing_timeout_s = post_processing_timeout_s
        self.execution_trace_observer = execution_trace_observer
        self.custom_trace_id_callback = custom_trace_id_callback
        self.profiler: ranges.profile | None = None
        self.preset_metadata: dict[str, str] = {}
        self._metadata: dict[str, Any] = {}

    def start(self) -> None:
        """Begin to observe."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Stop observing."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        if self.profiler is None or not self.acc_events:
            self.profiler = ranges.profile(
                record_shapes=self.record_shapes, profile_memory=self.profile_memory, with_stack=self.with_stack,
                with_flops=self.with_flops, with_modules=self.with_modules, acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s, experimental_config=self.experimental_config,
            )  # fmt: skip

    def start_trace(self) -> None:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before starting trace")
        self._metadata = dict(self.preset_metadata)
        self.profiler._start_trace()

    def stop_trace(self) -> None:
        self._initialized("stopping trace").__exit__(None, None, None)

    def _initialized(self, purpose: str) -> ranges.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def events(self) -> EventList:
        """The operators and ranges that were observed, by their beginning."""
        return self._initialized("accessing events").function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The events of each name added up; with the arguments, of each name, shapes of inputs, and `group_by_stack_n` frames."""
        found = self._initialized("getting key averages")
        return found.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the events as JSON for chrome://tracing and Perfetto; compressed if the name ends in .gz."""
        self._initialized("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stack of each event and its time, a line for each, as the programs that draw flame graphs read them."""
        self._initialized("exporting stacks").export_stacks(path, metric)

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Stop observing, or go on."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    def add_metadata(self, key: str, value: str) -> None:
        """A string that traces are written with."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A value, as JSON, that traces are written with."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """As `add_metadata_json`, for profiles that begin from now on."""
        self.preset_metadata[key] = json.loads(value)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write the memory of tensors over time, by what they are for: parameters, states of optimizers, inputs, activations, gradients.

        Args:
            path: `.html` for a page with a picture; `.raw.json.gz` for the events (nanoseconds, action, bytes, category); other names for [times in
                microseconds, sizes by category] as JSON, compressed if the name ends in `.gz`. Numbers of actions and categories are PyTorch's.
            device: "cpu" by default.

        Raises: ValueError unless the profile has record_shapes, profile_memory and with_stack.
        """
        warnings.warn(
            "`export_memory_timeline` is deprecated in PyTorch; torch.cpu.memory._record_memory_history, and that of torch.cuda, records more",
            FutureWarning,
            stacklevel=user_level(),
        )
        missing = [
            f"{name}=True"
            for name in ("record_shapes", "profile_memory", "with_stack")
            if not getattr(self, name)
        ]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        profiler = self._initialized("exporting memory timeline")
        profiler._events()  # raises while the profile runs
        profiler._timeline.export(path, str(device or "cpu"))


class profile(_KinetoProfile):  # noqa: N801 (PyTorch's name)
    """A context in which operators are observed, and ranges marked with `record_function`.

    An event has PyTorch's name: `aten::addmm` for an operator, `AddmmBackward0` for a node of a backward pass,
    `Optimizer.step#SGD.step` for a step; `weft::sgd` for a kernel that PyTorch has no operator for. The large elementwise operators
    run later than they are called: docs/profiling.md says what their times mean.

    activities: what is observed; only `ProfilerActivity.CPU` has events. schedule: from the number of a step to a ProfilerAction,
    see `schedule`; without it all steps are one. on_trace_ready: called with the profile when the steps to record are over.
    record_shapes: events have `input_shapes`. profile_memory: events have `cpu_memory_usage`, the bytes by which the memory of
    tensors grew meanwhile. with_stack: events have `stack`, the lines of the program that led to the call. with_flops: products and
    convolutions have `flops`. with_modules has no effect: `stack` tells the modules.

    >>> import weft as torch
    >>> layer, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
    >>> with torch.profiler.profile(record_shapes=True) as prof:
    ...     with torch.profiler.record_function("forward"):
    ...         y = layer(x)
    >>> for event in prof.events():
    ...     print(event.name, event.input_shapes)
    forward []
    aten::linear [[3, 4], [2, 4], [2]]
    aten::addmm [[2], [3, 4], [2, 4]]
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ):
        super().__init__(
            activities=activities, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack,
            with_flops=with_flops, with_modules=with_modules, experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer, acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback, post_processing_timeout_s=post_processing_timeout_s,
        )  # fmt: skip
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: ranges.record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._open_step()

    def stop(self) -> None:
        """End the step that is open, and the profile."""
        self._close_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """The step is over: the next one begins."""
        self._close_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        ranges.KinetoStepTracker.increment_step("profiler")
        self._open_step()

    def _open_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = ranges.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _close_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Open and close the trace as the action of the last step and that of the next ask for it."""
        records = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        goes_on = before is ProfilerAction.RECORD and after in records
        if before in records and not goes_on:
            self.stop_trace()
            if self.on_trace_ready and (before is ProfilerAction.RECORD_AND_SAVE or after is None):
                self.on_trace_ready(self)
        if after in records and not goes_on:
            self.prepare_trace()
            self.start_trace()
        elif after is ProfilerAction.WARMUP and self.profiler is None:
            self.prepare_trace()

    def get_trace_id(self) -> str | None:
        """The name of the trace that was begun last."""
        return None if self.profiler is None else self.profiler.trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """A function that names traces."""
        self.custom_trace_id_callback = callback


class _ITraceObserver:
    """What observes a profile."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def cleanup(self) -> None: ...


class ExecutionTraceObserver(_ITraceObserver):
    """PyTorch writes the graph of operators with their arguments here; weft has no such files."""

    def __init__(self) -> None:
        self._registered = False
        self._path: str | None = None

    @property
    def is_registered(self) -> bool:
        return self._registered

    def is_running(self) -> bool:
        return False

    def get_output_file_path(self) -> str | None:
        return self._path

    def register_callback(self, output_file_path: str) -> NoReturn:
        raise NotImplementedError(
            "ExecutionTraceObserver.register_callback: execution traces are not written; export_chrome_trace writes events"
        )

    def unregister_callback(self) -> None:
        """Nothing is registered."""

    def set_extra_resource_collection(self, val: bool) -> None:
        """Has no effect."""

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        return None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        path = os.path.splitext(trace_path)[0] + "_resources"
        if create_dir:
            os.makedirs(path, exist_ok=True)
        return path if os.path.exists(path) else None

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """None, unless ENABLE_PYTORCH_EXECUTION_TRACE asks for one, which is refused."""
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") == "1":
            ExecutionTraceObserver().register_callback("")
        return None
