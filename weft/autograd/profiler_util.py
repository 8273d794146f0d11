"""What profilers report: events, their averages by name, and tables of both."""

from __future__ import annotations

import bisect
import enum
import itertools
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..compat.missing import module_getattr

__all__ = [
    "EventList",
    "EventMetadata",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]


class DeviceType(enum.Enum):
    """Kinds of devices in events."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


# PyTorch's numbers for kinds of events: operators, nodes of backward passes, ranges of users.
FUNCTION_SCOPE, BACKWARD_SCOPE, USER_SCOPE = 0, 1, 7


MEMORY = "[memory]"  # the event of what a program allocates or frees between operators


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """A kernel that a device ran for an event."""

    name: str
    device: int
    duration: float


_METADATA = (
    "registers_per_thread shared_memory grid block priority blocks_per_sm warps_per_sm occupancy est_occupancy_pct queued graph_id "
    "graph_node_id stream context channel channel_type bytes bandwidth_gb_s collective_name dtype in_msg_nelems out_msg_nelems "
    "in_split_size out_split_size group_size group_ranks rank process_group_name process_group_desc global_rank_start "
    "global_rank_stride is_async src_rank dst_rank seq"
)
EventMetadata = NamedTuple("EventMetadata", [(name, Any) for name in _METADATA.split()])  # type: ignore[misc]
EventMetadata.__doc__ = "What devices say of their kernels; nothing here is such a device."


class StringTable(defaultdict):
    """Names as they are shown; a name that begins with _Z would be a mangled one of C++, and stays as it is."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of memory, found by their time."""

    def __init__(self, mem_records: Iterable[Any]):
        self._mem_records = sorted(mem_records, key=lambda each: each[0].start_ns())
        self._start_nses = [each[0].start_ns() for each in self._mem_records]

    def in_interval(self, start_ns: int, end_ns: int) -> Any:
        """The records from `start_ns` to `end_ns`."""
        first = bisect.bisect_left(self._start_nses, start_ns)
        return iter(self._mem_records[first : bisect.bisect_right(self._start_nses, end_ns)])


# ---- Text ------------------------------------------------------------------------------------------------------------


def _format_time(time_us: float) -> str:
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if time_us >= unit:
            return f"{time_us / unit:.3f}{name}"
    return f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"


def _text_of(name: str) -> Any:
    return property(lambda self: _format_time(getattr(self, name)))


class FormattedTimesMixin:
    """Times as text, and averages, for objects with `count`, total times and self times."""

    cpu_time_total: float
    device_time_total: float
    count: int
    cpu_time_str = _text_of("cpu_time")
    device_time_str = _text_of("device_time")
    cpu_time_total_str = _text_of("cpu_time_total")
    device_time_total_str = _text_of("device_time_total")
    self_cpu_time_total_str = _text_of("self_cpu_time_total")
    self_device_time_total_str = _text_of("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count

    @property
    def cuda_time(self) -> float:
        return self.device_time


# ---- Events ----------------------------------------------------------------------------------------------------------


class FunctionEvent(FormattedTimesMixin):
    """One range of time: its name, its begin and end, and the ranges within it."""

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: Any = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        **more: Any,
    ):
        self.id, self.node_id, self.name, self.overload_name = id, node_id, name, overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread = thread, fwd_thread
        self.kernels: list[Kernel] = []
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes, self.concrete_inputs, self.kwinputs = input_shapes, concrete_inputs, kwinputs
        self.stack, self.scope, self.use_device = stack, scope, use_device
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.is_async, self.is_remote, self.sequence_nr = is_async, is_remote, sequence_nr
        self.device_type, self.device_index = device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_legacy, self.flops, self.is_user_annotation = is_legacy, flops, is_user_annotation
        self.is_python_function, self.activity_type, self._metadata_json = (
            is_python_function,
            activity_type,
            metadata_json,
        )
        # An arrow of a trace, from a call to the node of the backward pass that it recorded: its number and its end.
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        vars(self).update(more)

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The key by which events are averaged."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us() if self.device_type is DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        if self.is_async or self.device_type is not DeviceType.CPU:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        return sum(kernel.duration for kernel in self.kernels)

    self_device_time_total = device_time_total

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    cuda_time_total = self_cuda_time_total = device_time_total
    self_cuda_memory_usage = self_device_memory_usage

    @property
    def metadata_json(self) -> str:
        return self._metadata_json or "{}"

    def __repr__(self) -> str:
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type=DeviceType.{self.device_type.name} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} name={self.name} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


_SUMS = (
    "cpu_time_total device_time_total self_cpu_time_total self_device_time_total cpu_memory_usage device_memory_usage "
    "self_cpu_memory_usage self_device_memory_usage count"
).split()


class FunctionEventAvg(FormattedTimesMixin):
    """Several events of one name, added up."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.cpu_time_total = self.device_time_total = 0
        self.self_cpu_time_total = self.self_device_time_total = 0
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.self_cpu_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = None
        self.overload_name = self.stack = self.scope = None
        self.cpu_children: Any = None
        self.cpu_parent: Any = None
        self.device_type = DeviceType.CPU
        self.flops = 0

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or the sum of others."""
        if self.key is None:
            for name in (
                "key node_id is_async is_remote use_device input_shapes overload_name stack scope device_type is_legacy "
                "cpu_parent cpu_children is_user_annotation"
            ).split():
                setattr(self, name, getattr(other, name))
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)) or other.key != self.key:
            raise AssertionError(f"an event called {self.key} is expected, not {other}")
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
            f"self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """Events, or their averages."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._use_device = kwargs.pop("use_device", None)
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        super().__init__(*args, **kwargs)

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def _populate_cpu_children(self) -> None:
        """Set parents and children from the times: an event lies in the innermost one of its thread that is around it."""
        by_start = sorted(
            self, key=lambda event: (event.thread, event.time_range.start, -event.time_range.end)
        )
        for _, events in itertools.groupby(by_start, key=lambda event: event.thread):
            around: list[FunctionEvent] = []
            for event in events:
                times = event.time_range
                while around and (
                    times.start >= around[-1].time_range.end or times.end > around[-1].time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        total = FunctionEventAvg()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
        return total

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The events of each name added up."""
        groups: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            key = [event.key, event.is_user_annotation]
            key += [str(event.input_shapes)] * group_by_input_shapes
            key += [str((event.stack or ())[:group_by_stack_n])] * (group_by_stack_n > 0)
            key += [event.overload_name] * group_by_overload_name
            groups[*key].add(event)
        averages = EventList(
            groups.values(), use_device=self._use_device, profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )  # fmt: skip
        for each in averages:
            each.stack = (each.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                each.input_shapes = ""
            if not group_by_overload_name:
                each.overload_name = ""
        return averages

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, the largest `sort_by` first."""
        return _build_table(
            self, sort_by, header, row_limit, max_src_column_width, max_name_column_width,
            max_shapes_column_width, self._with_flops, self._profile_memory, top_level_events_only, time_unit,
        )  # fmt: skip

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON, which chrome://tracing and Perfetto show."""
        with open(path, "w") as file:
            json.dump({"traceEvents": trace_events(self)}, file, default=str)

    def supported_export_stacks_metrics(self) -> list[str]:
        return [
            "self_cpu_time_total",
            "self_cuda_time_total",
            "self_xpu_time_total",
            "self_privateuse1_time_total",
        ]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line for each event that has a stack: its frames, and the metric."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        with open(path, "w") as file:
            for event in self:
                value = getattr(event, metric.replace("cuda", "device").replace("xpu", "device"))
                if event.stack and int(value) > 0:
                    file.write(";".join(reversed(event.stack)) + f" {int(value)}\n")


_FORWARD_TO_BACKWARD = 1  # Kineto's number for arrows from calls to nodes


def link_passes(events: Iterable[FunctionEvent]) -> None:
    """Number the nodes of backward passes, and give each call that recorded one of them the number of the node."""
    calls: dict[int, FunctionEvent] = {}
    count = 0
    for event in events:
        if event.sequence_nr < 0:
            continue
        if event.scope == FUNCTION_SCOPE and not event.fwd_thread:
            calls.setdefault(event.sequence_nr, event)
        elif event.scope == BACKWARD_SCOPE and (call := calls.pop(event.sequence_nr, None)) is not None:
            count += 1
            for end in (call, event):
                end.flow_id, end.flow_type, end.flow_start = count, _FORWARD_TO_BACKWARD, end is call


def trace_events(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """Events in the format of Chrome's traces, with arrows from calls to nodes; times are in microseconds."""
    found = []
    for event in events:
        place = {"pid": os.getpid(), "tid": event.thread, "ts": event.time_range.start}
        if event.name == MEMORY:
            found.append({"ph": "i", "s": "t", "name": MEMORY, **place, "args": _trace_args(event)})
            continue
        shown = {"ph": "X", "cat": event.activity_type, "name": event.trace_name, **place}
        found.append({**shown, "dur": event.time_range.elapsed_us(), "args": _trace_args(event)})
        if event.flow_id:
            end = {"ph": "s"} if event.flow_start else {"ph": "f", "bp": "e"}
            found.append({**end, "id": event.flow_id, "cat": "fwdbwd", "name": "fwdbwd", **place})
    return found


def _trace_args(event: FunctionEvent) -> dict[str, Any]:
    """What a trace says of an event, under Kineto's names."""
    known = {
        "External id": event.id,
        "Sequence number": event.sequence_nr if event.sequence_nr >= 0 else None,
        "Fwd thread id": event.fwd_thread if event.scope == BACKWARD_SCOPE else None,
        "Input Dims": event.input_shapes or None,
        "Concrete Inputs": [str(each) for each in event.concrete_inputs or ()] or None,
        "Call stack": ";".join(event.stack or ()) or None,
        "Bytes": event.cpu_memory_usage or None,
        "Flops": event.flops or None,
    }
    keywords = {
        name: value for name, value in (event.kwinputs or {}).items() if isinstance(value, (int, float, str))
    }
    return keywords | {name: value for name, value in known.items() if value is not None}


_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_WIDTH = 12  # characters of a column of numbers


class _Column(NamedTuple):
    """A column of a table: its head, its width, the text of an event, and "<" if the text begins at the left."""

    head: str
    width: int
    cell: Callable[[Any], str]
    side: str = ">"


def _build_table(
    events: EventList,
    sort_by: str | None = None,
    header: str | None = None,
    row_limit: int = 100,
    max_src_column_width: int = 75,
    max_name_column_width: int = 55,
    max_shapes_column_width: int = 80,
    with_flops: bool = False,
    profile_memory: bool = False,
    top_level_events_only: bool = False,
    time_unit: str | None = None,
) -> str:
    if not events:
        return ""
    total = events.self_cpu_time_total

    def time(value: float) -> str:
        return _format_time(value) if time_unit is None else f"{value / _UNITS[time_unit]:.3f}{time_unit}"

    rows: list[Any] = list(events)
    if sort_by is not None:
        name = sort_by.replace("cuda", "device").replace("xpu", "device")
        rows.sort(key=lambda event: getattr(event, name), reverse=True)
    shown = [event for event in rows if not (top_level_events_only and event.cpu_parent is not None)]
    shown = shown if row_limit == -1 else shown[:row_limit]
    longest = max(len(event.key) for event in rows) + 4
    columns = [
        _Column(
            "Name", min(longest, max_name_column_width), lambda event: _cut(event.key, max_name_column_width)
        ),
        _Column("Self CPU %", _WIDTH, lambda event: _format_time_share(event.self_cpu_time_total, total)),
        _Column("Self CPU", _WIDTH, lambda event: time(event.self_cpu_time_total)),
        _Column("CPU total %", _WIDTH, lambda event: _format_time_share(event.cpu_time_total, total)),
        _Column("CPU total", _WIDTH, lambda event: time(event.cpu_time_total)),
        _Column("CPU time avg", _WIDTH, lambda event: time(event.cpu_time)),
    ]
    if profile_memory:
        columns.append(_Column("CPU Mem", _WIDTH, lambda event: _format_memory(event.cpu_memory_usage)))
        columns.append(
            _Column("Self CPU Mem", _WIDTH, lambda event: _format_memory(event.self_cpu_memory_usage))
        )
    columns.append(_Column("# of Calls", _WIDTH, lambda event: str(event.count)))
    if any(event.input_shapes for event in rows):
        longest = max(len(str(event.input_shapes)) for event in rows) + 4
        width = min(longest, max_shapes_column_width)
        columns.append(_Column("Input Shapes", width, lambda event: str(event.input_shapes)[:width]))
    frames = [frame for event in rows for frame in event.stack or ()]
    if frames:
        source = min(max(map(len, frames)) + 4, max_src_column_width)
        columns.append(
            _Column(
                "Source Location", source, lambda event: _end(next(iter(event.stack or ()), ""), source), "<"
            )
        )
    if with_flops:
        columns += _flops_column(rows)

    def line(cells: Iterable[str]) -> str:
        return "".join(
            f"{cell:{column.side}{column.width}}  " for cell, column in zip(cells, columns, strict=True)
        )

    rule = line("-" * column.width for column in columns)
    double = "=" * (len(rule) - 2)
    lines = [] if header is None else [double, header]
    if top_level_events_only:
        lines += [double, "This report only display top-level ops statistics"]
    lines += [rule, line(column.head for column in columns), rule]
    for event in shown:
        lines.append(line(column.cell(event) for column in columns))
        if frames:  # the other frames, and an empty line
            further = [_end(frame, source) for frame in (event.stack or ())[1:]]
            lines += [
                line(text if column.side == "<" else "" for column in columns) for text in [*further, ""]
            ]
    return "\n".join([*lines, rule, f"Self CPU time total: {time(total)}", ""])


def _flops_column(rows: Sequence[Any]) -> list[_Column]:
    """The column with numbers of operations, in the unit of the smallest; none if no event has a number."""
    known = [event.flops for event in rows if event.flops]
    if not known:
        return []
    power = min(int(math.log10(min(known)) // 3), 5)
    unit = ("", "K", "M", "G", "T", "P")[power]
    return [
        _Column(
            f"Total {unit}FLOPs",
            _WIDTH,
            lambda event: f"{event.flops * 1000.0**-power:8.3f}" if event.flops else "--",
        )
    ]


def _format_memory(nbytes: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} B"


def _end(text: str, width: int) -> str:
    """The end of a text that is too long."""
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def _cut(text: str, width: int) -> str:
    return text if len(text) < width - 3 else text[: width - 3] + "..."


# ---- Recording -------------------------------------------------------------------------------------------------------

_ids = itertools.count(1)
next_id = _ids.__next__

__getattr__ = module_getattr(__name__)
