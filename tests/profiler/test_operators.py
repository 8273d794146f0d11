"""Operators in profiles: names, nesting and counts are those of PyTorch's profiler on the same programs."""

import gc
import json
import threading

import pytest
import torch

import weft
from weft.core import dispatch, entry
from weft.core.overrides import overridden, override_types

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch's profiler
EVALUATE = "autograd::engine::evaluate_function: "
ACCUMULATE = "torch::autograd::AccumulateGrad"


def profiled(lib, program, **options):
    with lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU], **options) as prof:
        program(lib)
    return prof


def paths(events, names):
    """For each event with one of these names: the names of the events around it that are among them, and its own."""
    found = []
    for event in events:
        path, around = [], event
        while around is not None:
            if around.name in names:
                path.append(around.name)
            around = around.cpu_parent
        if event.name in names:
            found.append(path[::-1])
    return sorted(found)


def perceptron(lib):
    lib.manual_seed(0)
    model = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.ReLU(), lib.nn.Linear(8, 3))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        with lib.profiler.record_function("forward"):
            loss = model(lib.ones(5, 4)).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def convolutions(lib):
    model = lib.nn.Sequential(
        lib.nn.Conv2d(2, 3, 3), lib.nn.BatchNorm2d(3), lib.nn.GELU(), lib.nn.MaxPool2d(2), lib.nn.Flatten()
    )
    lib.nn.functional.cross_entropy(model(lib.ones(2, 2, 6, 6)), lib.tensor([0, 1])).backward()


def arithmetic(lib):
    a, b = lib.ones(3), lib.ones(3)
    a.add_(b)
    lib.add(a, b, out=lib.empty(3))
    result = a + b * 2 - a / b
    lib.nn.functional.relu(result, inplace=True)
    lib.matmul(lib.ones(2, 3), a).sum().item()
    lib.cat([a, b])[1:].exp()
    lib.softmax(a, 0).to(lib.float64)


def custom(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, ct):
            return ct * 2

    Double.apply(lib.ones(2, requires_grad=True)).sum().backward()


def loading(lib):
    data = lib.utils.data.TensorDataset(lib.arange(6))
    for (batch,) in lib.utils.data.DataLoader(data, batch_size=3):
        batch.neg()


PROGRAMS = {
    perceptron: (
        *("forward", "aten::linear", "aten::addmm", "aten::relu", "aten::ones", "aten::ones_like", "Optimizer.step#SGD.step"),
        *("Optimizer.zero_grad#SGD.zero_grad", ACCUMULATE, EVALUATE + ACCUMULATE),
        *(f"{prefix}{node}Backward0" for prefix in ("", EVALUATE) for node in ("Sum", "Addmm", "Relu")),
    ),
    convolutions: (
        *("aten::conv2d", "aten::batch_norm", "aten::gelu", "aten::max_pool2d", "aten::flatten"),
        *("aten::cross_entropy_loss", "ConvolutionBackward0", EVALUATE + "ConvolutionBackward0", "GeluBackward0"),
    ),
    arithmetic: (
        *("aten::add", "aten::add_", "aten::mul", "aten::sub", "aten::div", "aten::relu_", "aten::matmul", "aten::mv"),
        *("aten::item", "aten::cat", "aten::slice", "aten::exp", "aten::softmax"),
    ),
    custom: ("Double", "aten::sum", "DoubleBackward", EVALUATE + "DoubleBackward"),
    loading: ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "aten::neg"),
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_names_nesting_and_counts_are_pytorchs(program):
    names = PROGRAMS[program]
    expected = paths(profiled(torch, program).events(), names)
    assert paths(profiled(weft, program).events(), names) == expected
    assert {name for path in expected for name in path} == set(names)


def test_values_are_those_without_a_profile():
    def run(lib):
        x = lib.arange(6.0).reshape(2, 3).requires_grad_()
        y = lib.nn.functional.softmax(x @ x.t(), -1)
        (y * y).sum().backward()
        return y.tolist(), x.grad.tolist()

    plain = run(weft)
    with weft.profiler.profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True):
        assert run(weft) == plain


def test_shapes_group_averages():
    def program(lib):
        for n in (2, 3, 3):
            lib.nn.functional.linear(lib.ones(5, n), lib.ones(4, n), lib.ones(4))

    for lib in (weft, torch):
        averages = profiled(lib, program, record_shapes=True).key_averages(group_by_input_shape=True)
        found = [(each.input_shapes, each.count) for each in averages if each.key == "aten::linear"]
        assert found == [([[5, 2], [4, 2], [4]], 1), ([[5, 3], [4, 3], [4]], 2)]
    assert not any(event.input_shapes for event in profiled(weft, program).events())


def test_sequence_numbers_link_calls_and_nodes():
    def program(lib):
        x = lib.ones(3, requires_grad=True)
        (x.exp() * 2).sum().backward()

    for lib in (weft, torch):
        prof = profiled(lib, program)
        for call, node in (
            ("aten::exp", "ExpBackward0"),
            ("aten::mul", "MulBackward0"),
            ("aten::sum", "SumBackward0"),
        ):
            forward = next(event for event in prof.events() if event.name == call)
            evaluated, backward = [event for event in prof.events() if event.name in (node, EVALUATE + node)]
            assert backward.cpu_parent is evaluated and backward.scope == 1
            assert forward.sequence_nr == evaluated.sequence_nr == backward.sequence_nr >= 0
            assert (forward.fwd_thread, backward.fwd_thread) == (0, forward.thread)
            assert forward.flow_id == backward.flow_id > 0 and forward.flow_start and not backward.flow_start


def test_memory_is_that_of_the_calls():
    def program(lib):
        with lib.profiler.record_function("allocates"):
            x = lib.rand(64, 64)
        with lib.profiler.record_function("frees"):
            del x
        lib.rand(64, 64)

    usage = {}
    for event in profiled(weft, program, profile_memory=True).events():
        usage.setdefault(event.name, event.cpu_memory_usage)
    assert usage["allocates"] == usage["aten::rand"] == -usage["frees"] >= 64 * 64 * 4

    with weft.profiler.profile(profile_memory=True) as prof:
        x = weft.rand(64, 64)
        del x
        gc.collect()
        weft.rand(1)
    between = next(event for event in prof.events() if event.name == "[memory]")
    assert between.cpu_memory_usage == -usage["aten::rand"]
    assert "Self CPU Mem" in prof.key_averages().table()


def test_floating_point_operations_are_pytorchs():
    def program(lib):
        lib.ones(2, 3) @ lib.ones(3, 4)
        lib.nn.functional.linear(lib.ones(5, 3), lib.ones(4, 3), lib.ones(4))
        lib.bmm(lib.ones(2, 3, 4), lib.ones(2, 4, 5))
        lib.nn.functional.conv2d(lib.ones(2, 4, 6, 6), lib.ones(8, 2, 3, 3), groups=2)
        lib.ones(7) * lib.ones(7) + lib.ones(7)

    def counts(lib):
        averages = profiled(lib, program, with_flops=True).key_averages()
        return {each.key: each.flops for each in averages if each.flops}

    assert counts(weft) == counts(torch)
    assert "Total FLOPs" in profiled(weft, program, with_flops=True).key_averages().table()


def test_stacks_are_lines_of_the_program(tmp_path):
    def program(lib):
        x = lib.ones(3)
        for _ in range(2):
            x.exp()
        x.exp()

    prof = profiled(weft, program, with_stack=True)
    averages = [each for each in prof.key_averages(group_by_stack_n=2) if each.key == "aten::exp"]
    line = program.__code__.co_firstlineno
    assert [each.count for each in averages] == [2, 1]
    assert averages[0].stack[0] == f"{__file__}({line + 3}): program"
    assert averages[1].stack[1].endswith(": profiled")
    assert "Source Location" in prof.key_averages(group_by_stack_n=2).table()
    for event in prof.events():
        event.time_range.end = event.time_range.start + 5.5
    prof.export_stacks(str(tmp_path / "stacks"))
    assert f"{__file__}({line + 3}): program 5\n" in (tmp_path / "stacks").read_text()
    with pytest.raises(AssertionError, match="with_stack"):
        profiled(weft, program).export_stacks(str(tmp_path / "none"))


def test_traces_nest_and_have_arrows(tmp_path):
    def program(lib):
        x = lib.ones(3, requires_grad=True)
        with lib.profiler.record_function("range"):
            y = x.exp()
        y.sum().backward()

    prof = profiled(weft, program, record_shapes=True)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = {each["name"]: each for each in trace if each["ph"] == "X"}
    assert len({(each["pid"], each["tid"]) for each in trace}) == 1
    outer, inner = spans["range"], spans["aten::exp"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert (outer["cat"], inner["cat"]) == ("user_annotation", "cpu_op")
    assert inner["args"]["Input Dims"] == [[3]]
    arrows = [(each["ph"], each["id"], each["ts"]) for each in trace if each.get("name") == "fwdbwd"]
    assert ("s", 2, inner["ts"]) in arrows and ("f", 2, spans["ExpBackward0"]["ts"]) in arrows


def test_nothing_is_left_behind():
    function, code = weft.add, weft.add.__code__
    before = list(dispatch.watchers), set(override_types)
    with pytest.raises(ZeroDivisionError), weft.profiler.profile():
        weft.ones(2) + 1
        raise ZeroDivisionError
    assert weft.add is function and function.__code__ is code
    assert entry._ask is overridden
    assert (list(dispatch.watchers), set(override_types)) == before
    assert not weft.autograd._profiler_enabled() and not weft.autograd.profiler._is_profiler_enabled


def test_a_call_that_fails_is_an_event():
    with weft.profiler.profile() as prof:
        with pytest.raises(RuntimeError):
            weft.ones(2) + weft.ones(3)
        weft.ones(2).exp()
    names = [event.name for event in prof.events()]
    assert names == ["aten::ones", "aten::ones", "aten::add", "aten::ones", "aten::exp"]
    assert all(event.cpu_parent is None for event in prof.events())


def test_all_threads_are_observed():
    x = weft.ones(2)
    with weft.profiler.profile() as prof:
        with weft.profiler.record_function("here"):
            other = threading.Thread(target=x.exp)
            other.start()
            other.join()
    here, there = prof.events()
    assert (here.name, there.name) == ("here", "aten::exp")
    assert there.cpu_parent is None and there.thread != here.thread


def test_deferred_kernels_belong_to_the_call_that_reads():
    x = weft.ones(1 << 18)
    with weft.profiler.profile() as prof:
        y = (x * 2).exp()
        y.sum().item()
    (reader,) = [event for event in prof.events() if event.name == "aten::sum"]
    kernels = [event for event in prof.events() if event.name.startswith(("weft::fused(", "weft::deferred("))]
    assert kernels and all(event.cpu_parent is reader for event in kernels)
    assert {"mul", "exp"} <= {
        name for event in kernels for name in event.name.partition("(")[2].rstrip(")").split(", ")
    }
    assert not any(event.cpu_children for event in prof.events() if event.name in ("aten::mul", "aten::exp"))


def test_updates_of_optimizers_have_weft_names():
    w = weft.ones(3, requires_grad=True)
    w.grad = weft.ones(3)
    optimizer = weft.optim.Adam([w])
    with weft.profiler.profile() as prof:
        optimizer.step()
    step, *inside = prof.events()
    assert step.name == "Optimizer.step#Adam.step"
    assert "weft::adam" in {event.name for event in inside}


def test_custom_operators_have_their_names():
    @weft.library.custom_op("profiled::twice", mutates_args=())
    def twice(x: weft.Tensor) -> weft.Tensor:
        return x * 2

    with weft.profiler.profile() as prof:
        twice(weft.ones(2))
        weft.ops.aten.add.Tensor(weft.ones(2), weft.ones(2))
    names = [event.name for event in prof.events()]
    assert {"profiled::twice", "aten::mul", "aten::add"} <= set(names)


def test_transforms_are_observed():
    with weft.profiler.profile() as prof:
        weft.func.vmap(lambda x: x.exp())(weft.ones(2, 3))
        weft.func.grad(lambda x: x.sin().sum())(weft.ones(3))
        weft.compile(lambda x: x.cos())(weft.ones(3))
    names = {event.name for event in prof.events()}
    assert {"aten::exp", "aten::sin", "SinBackward0", "aten::cos"} <= names


def test_modes_are_asked_as_without_a_profile():
    seen = []

    class Names(weft.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **kwargs or {})

    with weft.profiler.profile() as prof, Names():
        weft.ones(2).exp()
    assert seen == ["ones", "exp"]
    assert [event.name for event in prof.events()] == ["aten::ones", "aten::exp"]

    with weft.utils.flop_counter.FlopCounterMode(display=False) as counter, weft.profiler.profile() as prof:
        weft.ones(2, 3) @ weft.ones(3, 4)
    assert counter.get_total_flops() == 48
    assert "aten::mm" in {event.name for event in prof.events()}


def test_collection_pauses():
    with weft.profiler.profile() as prof:
        weft.ones(2)
        prof.toggle_collection_dynamic(False, [weft.profiler.ProfilerActivity.CPU])
        weft.zeros(2)
        prof.toggle_collection_dynamic(True, [weft.profiler.ProfilerActivity.CPU])
        weft.full((2,), 1)
    assert [event.name for event in prof.events() if event.cpu_parent is None] == ["aten::ones", "aten::full"]


def test_ranges_with_arguments():
    for lib in (weft, torch):
        fast = lib._C._profiler._RecordFunctionFast
        with lib.profiler.profile(record_shapes=True) as prof:
            with fast("plain"), fast("given", [lib.ones(2, 3), "text"], {"grid": 4}):
                lib.ones(2, 3).as_strided((3, 2), (1, 3))
        events = {event.name: event for event in prof.events()}
        assert events["plain"].input_shapes == [] and events["plain"].kwinputs == {}
        assert events["given"].input_shapes == [[2, 3], []] and events["given"].kwinputs == {"grid": 4}
        assert events["aten::as_strided"].concrete_inputs[1:3] == [[3, 2], [1, 3]]


def test_experimental_options():
    config, callbacks = weft._C._profiler._ExperimentalConfig, list(gc.callbacks)
    with weft.profiler.profile(experimental_config=config(record_python_gc_info=True, verbose=True)) as prof:
        with weft.profiler.record_function("range"):
            gc.collect()
    outer, *inside = prof.events()
    assert "Python GC" in {event.name for event in inside} and gc.callbacks == callbacks
    assert all(event.cpu_parent is outer for event in inside)
    with pytest.raises(NotImplementedError, match="profiler_metrics"):
        profiled(weft, arithmetic, experimental_config=config(profiler_metrics=["cycles"]))


def test_tracers_are_left_alone():
    layer = weft.nn.Linear(2, 3)
    with weft.profiler.profile(record_shapes=True, with_flops=True):
        traced = weft.fx.symbolic_trace(layer)
        exported = weft.export.export(layer, (weft.ones(1, 2),))
    assert "linear" in traced.code and exported.module()(weft.ones(1, 2)).shape == (1, 3)
