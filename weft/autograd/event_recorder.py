"""What profiles are made of: `Recorder` collects the events of one profile, and `Range` is a context that is an event."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.above import above
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.explain import is_ours
from ..engine.memory import allocated
from .profiler_util import MEMORY, EventList, FunctionEvent, link_passes, next_id
from .ranges import profiling

_open: list[Recorder] = []  # the profiles that are open


class _Thread(threading.local):
    """The ranges that are open in a thread, the innermost last, and the profile that they belong to."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.open: list[FunctionEvent] = []
        self.number = threading.get_native_id()


_thread = _Thread()


class Options(NamedTuple):
    """What a profile notes of an event, besides its time."""

    shapes: bool = False
    stack: bool = False
    memory: bool = False
    flops: bool = False
    collections: bool = False  # of Python's garbage, as events


_TIMES = Options()


_CONCRETE = (bool, int, float, complex, str)


class Recorder:
    """Collects the events of one profile."""

    def __init__(self, options: Options = _TIMES) -> None:
        self.options = options
        self.events: list[FunctionEvent] = []
        self._began = time.perf_counter_ns()
        self.threads: dict[int, int] = {}  # by the number of a node, the thread that recorded it
        self._allocated = 0  # bytes, when the last event ended
        self.timeline: Any = None  # a `MemoryTimeline` of `profiler/memory_timeline.py`, if shapes, stacks and memory are noted

    def since_start(self) -> float:
        """Microseconds since the profile began."""
        return (time.perf_counter_ns() - self._began) / 1000

    def start(self) -> None:
        """Start to collect the events that begin from now on."""
        if _open:
            raise RuntimeError("Profiler is already enabled on this thread.")
        self._began = time.perf_counter_ns()
        self._allocated = allocated() if self.options.memory else 0
        self.resume()

    def stop(self) -> EventList:
        """Stop, and return the events that have ended, in the order in which they began."""
        self.pause()
        if self.timeline is not None:
            self.timeline.finish()
        events = sorted(self.events, key=lambda event: event.time_range.start)
        link_passes(events)
        return EventList(events, profile_memory=self.options.memory, with_flops=self.options.flops)

    def resume(self) -> None:
        """Collect events, from the start or after `pause`."""
        if self not in _open:
            above("profiler.operators").start(self)
            _open.append(self)
            profiling.on = bool(_open)

    def pause(self) -> None:
        """Collect no events until `resume`."""
        if self in _open:
            above("profiler.operators").stop()
            _open.remove(self)
            profiling.on = bool(_open)

    def enclosing(self) -> FunctionEvent | None:
        """The innermost event that is open in this thread."""
        return _thread.open[-1] if _thread.recorder is self and _thread.open else None

    def begin(
        self, name: str, inputs: Sequence[Any] = (), keywords: Any = None, **details: Any
    ) -> FunctionEvent:
        """An event that begins now, in the event that is open in this thread, for a call with these arguments.

        `details` are arguments of FunctionEvent.
        """
        if _thread.recorder is not self:
            _thread.recorder, _thread.open = self, []
        event = _new_event(name, **details)
        if _thread.open:
            event.set_cpu_parent(_thread.open[-1])
            _thread.open[-1].append_cpu_child(event)
        if self.options.shapes:
            event.input_shapes = [shape_of(each) for each in inputs]
            event.concrete_inputs = [_concrete(each) for each in inputs]
            event.kwinputs = {name: _concrete(value) for name, value in (keywords or {}).items()}
        if self.options.stack:
            event.stack = user_frames()
        _thread.open.append(event)
        if self.options.memory:
            event.cpu_memory_usage = -allocated()
            if event.cpu_parent is None:
                self._note_memory(-event.cpu_memory_usage)
        event.time_range.start = self.since_start()
        return event

    def end(self, event: FunctionEvent) -> None:
        """The event ends now, and with it those within it that are still open. It is dropped if the profile has ended."""
        event.time_range.end = self.since_start()
        if self.options.memory:
            self._allocated = allocated()
            event.cpu_memory_usage += self._allocated
        if event in _thread.open:
            del _thread.open[_thread.open.index(event) :]
        if self in _open:
            self.events.append(event)
        elif event.cpu_parent is not None:
            event.cpu_parent.cpu_children.remove(event)

    def _note_memory(self, now: int) -> None:
        """Note what the program allocated or freed between two events, as an event of its own."""
        if now != self._allocated:
            event = _new_event(MEMORY, cpu_memory_usage=now - self._allocated)
            event.time_range.start = event.time_range.end = self.since_start()
            self.events.append(event)


def _concrete(value: Any) -> Any:
    """An argument as an event keeps it: a number, a string or a list of them; None for what may hold memory."""
    if isinstance(value, (tuple, list)) and all(isinstance(each, _CONCRETE) for each in value):
        return list(value)
    return value if isinstance(value, _CONCRETE) else None


def _new_event(name: str, **details: Any) -> FunctionEvent:
    """An event of this thread, without times. All steps of a training loop have one name, but in traces."""
    shown = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
    known = {
        "overload_name": "",
        "fwd_thread": 0,
        "input_shapes": [],
        "stack": [],
        "kwinputs": {},
        "activity_type": "cpu_op",
    }
    return FunctionEvent(next_id(), shown, _thread.number, 0, 0, **{**known, "trace_name": name, **details})


def shape_of(value: Any) -> list:
    """The shape of a tensor as a list, those of the tensors in a list; an empty list for other arguments."""
    if isinstance(value, Tensor) and isinstance(
        value.spec, Spec
    ):  # a tracer may put an object of its own there
        return list(value.spec.shape)
    if isinstance(value, (tuple, list)) and value and isinstance(value[0], Tensor):
        return [shape_of(each) for each in value]
    return []


def user_frames() -> list[str]:
    """The calls that led here as `file(line): function`, the innermost first, without those of weft."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_ours(code.co_filename):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return found


def recording() -> Recorder | None:
    """The recorder of the profile that is open, if one is."""
    return _open[-1] if _open else None


class Range:
    """A context that is an event of the profile that is open, if one is. `details` are those of `Recorder.begin`."""

    def __init__(self, name: str, **details: Any):
        self.name, self._details = name, details
        self._range: tuple[Recorder, FunctionEvent] | None = None

    def __enter__(self) -> Any:
        recorder = recording()
        self._range = None if recorder is None else (recorder, recorder.begin(self.name, **self._details))
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self._range is not None:
            recorder, event = self._range
            recorder.end(event)
            self._range = None
