import gzip
import json

import pytest
import torch

import weft
from weft.autograd import profiler, profiler_util
from weft.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch's profiler


def test_ranges_are_timed_and_nest():
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("outer"):
            for _ in range(2):
                with record_function("inner"):
                    sum(range(20000))
    outer, first, second = prof.events()
    assert [each.name for each in prof.events()] == ["outer", "inner", "inner"]
    assert outer.cpu_children == [first, second] and first.cpu_parent is outer
    assert outer.cpu_time_total >= first.cpu_time_total + second.cpu_time_total > 0
    assert outer.self_cpu_time_total == pytest.approx(
        outer.cpu_time_total - first.cpu_time_total - second.cpu_time_total
    )
    averages = {each.key: each for each in prof.key_averages()}
    assert averages["inner"].count == 2
    assert averages["inner"].cpu_time == pytest.approx((first.cpu_time_total + second.cpu_time_total) / 2)
    assert prof.key_averages().total_average().count == 3


def test_nothing_is_noted_outside_of_a_profile():
    with record_function("before"):
        with profile() as prof:
            pass

    @record_function("decorated")
    def function():
        return 3

    assert function() == 3 and prof.events() == []
    assert not profiler._is_profiler_enabled
    with profiler.profile() as prof:
        assert profiler._is_profiler_enabled
        function()
        left_open = record_function("open").__enter__()
    left_open.__exit__(None, None, None)
    assert [each.name for each in prof.function_events] == ["decorated"]


@pytest.mark.parametrize(
    "options",
    [
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1},
        {"wait": 0, "warmup": 0, "active": 1},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 3, "skip_first_wait": 1},
    ],
)
def test_schedules_are_pytorchs(options):
    own, reference = schedule(**options), torch.profiler.schedule(**options)
    assert [own(step).name for step in range(20)] == [reference(step).name for step in range(20)]


def observed(lib, **options):
    """What on_trace_ready sees in six steps."""
    found = []

    def note(prof):
        found.append((prof.step_num, sorted((each.key, each.count) for each in prof.key_averages())))

    plan = lib.profiler.schedule(**options)
    with lib.profiler.profile(schedule=plan, on_trace_ready=note) as prof:
        for _ in range(6):
            with lib.profiler.record_function("work"):
                pass
            prof.step()
    return found, prof.step_num


@pytest.mark.parametrize(
    "options",
    [
        {"wait": 1, "warmup": 1, "active": 2, "repeat": 1},
        {"wait": 0, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 0, "active": 2},
        {"wait": 4, "warmup": 0, "active": 9},
    ],
)
def test_on_trace_ready_runs_as_in_pytorch(options):
    assert observed(weft, **options) == observed(torch, **options)


def test_steps_have_one_name_but_in_traces(tmp_path):
    plan = schedule(wait=0, warmup=0, active=2)
    with profile(schedule=plan) as prof:
        prof.step()
    assert [event.name for event in prof.events()] == ["ProfilerStep*", "ProfilerStep*"]
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [each["name"] for each in trace] == ["ProfilerStep#0", "ProfilerStep#1"]


def test_traces_are_written(tmp_path):
    handler = tensorboard_trace_handler(str(tmp_path / "logs"), worker_name="me", use_gzip=True)
    with profile(on_trace_ready=handler) as prof:
        with record_function("a"):
            pass
        prof.add_metadata("key", "value")
        prof.add_metadata_json("numbers", "[1, 2]")
    (written,) = (tmp_path / "logs").iterdir()
    assert written.name.startswith("me.") and written.name.endswith(".pt.trace.json.gz")
    with gzip.open(written) as file:
        trace = json.load(file)
    assert trace["numbers"] == [1, 2]
    assert trace["key"] == "value" and [each["name"] for each in trace["traceEvents"]] == ["a"]
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"][0]["ph"] == "X"


def events(lib, **options):
    make = lib.autograd.profiler_util.FunctionEvent
    outer = make(1, "outer", 0, 0, 1234.5, input_shapes=[], flops=0, cpu_memory_usage=-3 << 20)
    inner = make(
        2, "inner with a long name", 0, 10, 500.25, input_shapes=[], flops=12345, cpu_memory_usage=1234
    )
    outer.append_cpu_child(inner)
    inner.set_cpu_parent(outer)
    if options.pop("located", False):
        inner.input_shapes = [[2, 3], []]
        outer.stack, inner.stack = [], ["a/very/long/path/of/a/file.py(12): function", "file.py(1): main"]
    return lib.autograd.profiler_util.EventList([outer, inner], use_device=None, **options)


def test_tables_are_pytorchs():
    own, reference = events(weft), events(torch)
    assert repr(own[0]) == repr(reference[0])
    for options in (
        {},
        {"sort_by": "self_cpu_time_total", "row_limit": 1},
        {"max_name_column_width": 8},
        {"header": "times"},
        {"top_level_events_only": True},
        {"time_unit": "ms"},
    ):
        assert own.table(**options) == reference.table(**options)
    for columns in ({"profile_memory": True, "with_flops": True}, {"located": True}):
        for options in ({}, {"max_src_column_width": 20, "max_shapes_column_width": 5}):
            assert events(weft, **columns).table(**options) == events(torch, **columns).table(**options)
    assert own.self_cpu_time_total == reference.self_cpu_time_total


def test_parents_and_children_follow_from_times():
    def children(lib):
        make = lib.autograd.profiler_util.FunctionEvent
        ranges = [(1, 0, 2), (1, 1, 2), (0, 0, 2), (0, 1, 3), (0, 1, 2)]
        found = lib.autograd.profiler_util.EventList(
            make(k, "", thread, start, end, node_id=0) for k, (thread, start, end) in enumerate(ranges)
        )
        found._populate_cpu_children()
        return [[child.id for child in each.cpu_children] for each in found]

    assert children(weft) == children(torch) == [[1], [], [], [4], []]


def test_what_is_not_observed_says_so(tmp_path):
    with (
        pytest.warns(UserWarning, match="none of CUDA"),
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]),
    ):
        pass
    with pytest.raises(NotImplementedError, match="types of events"):
        profile(activities=[{ProfilerActivity.CPU: ["CPU_OP"]}])
    with (
        pytest.raises(ValueError, match="post_processing_timeout_s"),
        profile(post_processing_timeout_s=-1.0),
    ):
        pass
    with pytest.raises(NotImplementedError):
        weft.profiler.ExecutionTraceObserver().register_callback("x")
    with pytest.raises(AssertionError, match="CUDA"), profiler.emit_nvtx():
        pass
    with pytest.raises(AssertionError):
        profile().key_averages()
    prof = profiler.profile()
    with prof, pytest.raises(RuntimeError, match="not reentrant"), prof:
        pass
    with profile(), pytest.raises(RuntimeError, match="already enabled"), profile():
        pass


def test_small_things():
    assert weft.profiler.supported_activities() == {ProfilerActivity.CPU}
    unique = profiler.EnforceUnique()
    unique.see(1)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see(1)
    assert profiler_util.Interval(1, 4).elapsed_us() == 3
    assert profiler_util.StringTable()["name"] == "name"
    for begin in (weft.profiler.itt.range("x"), profiler.emit_itt()):
        with pytest.raises(RuntimeError, match="ITT"), begin:
            pass
    step = profiler.KinetoStepTracker.increment_step("mine")
    assert profiler.KinetoStepTracker.increment_step("mine") == step + 1
    assert profiler.KinetoStepTracker.erase_step_count("mine")
