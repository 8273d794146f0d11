"""What profilers report: events, their averages by name, and tables of both."""

from __future__ import annotations

import bisect
import enum
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
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
        vars(self).update(more)

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """The key by which events are averaged: their name, or one key for all steps of a training loop."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

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
        return "{}"

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
            groups[*key].add(event)
        averages = EventList(
            groups.values(), use_device=self._use_device, profile_memory=self._profile_memory
        )
        for each in averages:
            if not group_by_input_shapes:
                each.input_shapes = ""
            if not group_by_stack_n:
                each.stack = []
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
            max_shapes_column_width, top_level_events_only=top_level_events_only, time_unit=time_unit,
        )  # fmt: skip

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON, which chrome://tracing and Perfetto show."""
        with open(path, "w") as file:
            json.dump({"traceEvents": trace_events(self)}, file)

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


def trace_events(events: Iterable[FunctionEvent]) -> list[dict[str, Any]]:
    """Events in the format of Chrome's traces; times are in microseconds."""
    return [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": event.name,
            "pid": "CPU",
            "tid": event.thread,
            "ts": event.time_range.start,
            "dur": event.time_range.elapsed_us(),
            "args": {},
        }
        for event in events
    ]


_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


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
    if top_level_events_only:
        rows = [event for event in rows if event.cpu_parent is None]
    shown = rows if row_limit == -1 else rows[:row_limit]
    longest = max(len(event.key) for event in rows) + 4
    widths = [min(longest, max_name_column_width), *[12] * 6]
    columns: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda event: _cut(event.key, max_name_column_width)),
        ("Self CPU %", lambda event: _format_time_share(event.self_cpu_time_total, total)),
        ("Self CPU", lambda event: time(event.self_cpu_time_total)),
        ("CPU total %", lambda event: _format_time_share(event.cpu_time_total, total)),
        ("CPU total", lambda event: time(event.cpu_time_total)),
        ("CPU time avg", lambda event: time(event.cpu_time)),
        ("# of Calls", lambda event: str(event.count)),
    ]
    if any(event.input_shapes for event in shown):
        columns.append(("Input Shapes", lambda event: _cut(str(event.input_shapes), max_shapes_column_width)))
        widths.append(min(max_shapes_column_width, max(len(str(event.input_shapes)) for event in shown) + 4))

    def line(values: Iterable[str]) -> str:
        return "".join(f"{value:>{width}}  " for value, width in zip(values, widths, strict=True))

    rule = line("-" * width for width in widths)
    lines = [] if header is None else ["=" * (len(rule) - 2), header]
    lines += [rule, line(name for name, _ in columns), rule]
    lines += [line(cell(event) for _, cell in columns) for event in shown]
    return "\n".join([*lines, rule, f"Self CPU time total: {time(total)}", ""])


def _cut(text: str, width: int) -> str:
    return text if len(text) < width - 3 else text[: width - 3] + "..."


# ---- Recording -------------------------------------------------------------------------------------------------------

_ids = itertools.count(1)
next_id = _ids.__next__

__getattr__ = module_getattr(__name__)
