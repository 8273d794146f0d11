"""Small modules of `torch.utils`."""

import importlib
import io
import pickle
import zipfile

import pytest
import torch
import torch.utils._device
import torch.utils.benchmark
import torch.utils.debug_log
import torch.utils.file_baton
import torch.utils.module_tracker
import torch.utils.show_pickle
import torch.utils.throughput_benchmark
import torch.utils.weak
from expressions import check, lines

import weft
import weft.utils.collect_env
import weft.utils.debug_log
import weft.utils.file_baton
import weft.utils.module_tracker
import weft.utils.show_pickle
import weft.utils.throughput_benchmark
import weft.utils.weak

EXPRESSIONS = """
torch.utils.show_pickle.FakeObject('m', 'n', (1, 2))
torch.utils.show_pickle.FakeClass('m', 'n')
torch.utils.show_pickle.FakeClass('m', 'n')(1)
torch.utils.throughput_benchmark.format_time(time_us=5)
torch.utils.throughput_benchmark.format_time(time_ms=1500)
torch.utils.throughput_benchmark.format_time(time_s=0)
torch.utils.throughput_benchmark.format_time(time_s=0, time_us=1)  # raises
torch.utils.deterministic.fill_uninitialized_memory
torch.utils.swap_tensors(torch.ones(2), torch.zeros(3))
torch.utils.set_module(type('A', (), {}), 3)  # raises
torch.utils.hooks.warn_if_has_hooks(torch.ones(2))
torch.serialization.StorageType('FloatStorage').dtype
str(torch.serialization.StorageType('LongStorage'))
torch.serialization.check_module_version_greater_or_equal(np, (1, 0))
torch.serialization.check_module_version_greater_or_equal(np, (99, 0))
torch.serialization.check_module_version_greater_or_equal(type('M', (), {'__version__': 'x.y'}), (1, 0))  # raises
torch.serialization.check_module_version_greater_or_equal(type('M', (), {'__version__': 'x.y'}), (1, 0), False)
torch.utils.benchmark.Timer('1').repeat()  # raises
torch.utils.benchmark.Timer('1').autorange()  # raises
torch.utils.benchmark.utils.common.select_unit(0.002)
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)


@pytest.mark.parametrize("lib", [weft, torch])
def test_weak_keys(lib):
    weak = lib.utils.weak
    a, b = lib.ones(2), lib.ones(2)
    table = weak.WeakTensorKeyDictionary({a: 1})
    table[b] = 2
    assert table[a] == 1 and table.get(b) == 2 and a in table and len(table) == 2
    assert {id(key) for key in table.keys()} == {id(a), id(b)}  # noqa: SIM118
    assert sorted(table.values()) == [1, 2] and len(table.copy()) == 2
    reference = weak.TensorWeakRef(b)
    assert reference() is b
    assert weak.WeakIdRef(a) == weak.WeakIdRef(a) and not weak.WeakIdRef(a) == weak.WeakIdRef(b)  # noqa: SIM201
    del b
    assert len(table) == 1 and reference() is None
    assert table.pop(a) == 1 and a not in table and table.setdefault(a, 5) == 5


@pytest.mark.parametrize("lib", [weft, torch])
def test_swapped_tensors(lib):
    a, b = lib.nn.Parameter(lib.ones(2)), lib.zeros(3)
    a.note = "mine"
    a.sum().backward()
    lib.utils.swap_tensors(a, b)
    assert type(a) is lib.Tensor and type(b) is lib.nn.Parameter
    assert a.tolist() == [0, 0, 0] and b.tolist() == [1, 1] and b.note == "mine" and b.grad.tolist() == [1, 1]
    (b * 2).sum().backward()
    assert b.grad.tolist() == [3, 3]


def test_pickles_are_shown_without_running_them(tmp_path):
    path = tmp_path / "a.pt"
    weft.save({"w": weft.ones(2)}, path)
    shown = []
    for lib in (weft, torch):
        out = io.StringIO()
        with zipfile.ZipFile(path) as archive:
            member = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        lib.utils.show_pickle.main(["show_pickle", f"{path}@*/data.pkl"], out)
        shown.append(out.getvalue())
        assert member
    assert "_rebuild_tensor_v2" in shown[0] and "torch.FloatStorage" in shown[0]
    (tmp_path / "b.pkl").write_bytes(pickle.dumps({"print": print, "n": 1}))
    out = io.StringIO()
    assert weft.utils.show_pickle.main(["show_pickle", str(tmp_path / "b.pkl")], out) is None
    assert out.getvalue() == "{'n': 1, 'print': builtins.print}\n"


def test_throughput():
    bench = weft.utils.throughput_benchmark.ThroughputBenchmark(weft.nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="add_input"):
        bench.benchmark()
    bench.add_input(weft.ones(1, 2))
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=5)
    assert (
        stats.num_iters == 5 and stats.iters_per_second > 0 and "Total number of iterations: 5" in str(stats)
    )
    bench.add_input("wrong")
    with pytest.raises((TypeError, AttributeError, RuntimeError)):
        bench.benchmark(num_warmup_iters=0, num_iters=50)


@pytest.mark.parametrize("lib", [weft, torch])
def test_a_baton(lib, tmp_path):
    one, other = (lib.utils.file_baton.FileBaton(tmp_path / "lock") for _ in range(2))
    assert one.try_acquire() and not other.try_acquire()
    one.release()
    other.wait()
    assert other.try_acquire()
    other.release()


def test_which_modules_are_called():
    class Shown(weft.nn.Module):
        def forward(self, x):
            seen.append(set(tracker.parents))
            return x

    seen = []
    with weft.utils.module_tracker.ModuleTracker() as tracker:
        weft.nn.Sequential(weft.nn.Identity(), Shown())(weft.ones(1))
    assert seen == [{"Global", "Sequential", "Sequential.1"}] and tracker.parents == {"Global"}


def test_logged_gradients(logged):
    x = weft.ones(2, requires_grad=True)
    weft.utils.debug_log.debug_grad_log(x)
    (x * 3).sum().backward()
    assert "norm 4.24" in " ".join(logged)


def test_facts_about_the_machine():
    report = weft.utils.collect_env.get_pretty_env_info()
    assert f"PyTorch version: {weft.__version__}" in report and "[pip3] numpy==" in report
    assert (
        weft.utils.collect_env.run_and_parse_first_match(weft.utils.collect_env.run, "echo a 12", r"a (\d+)")
        == "12"
    )
    assert weft.utils.collect_env.run_and_read_all(weft.utils.collect_env.run, "false") is None


def test_hooks_of_one_call():
    seen = []
    hook = weft.utils.hooks.BackwardHook(
        "module",
        [lambda module, inputs, outputs: seen.append(("after", inputs[0].tolist(), outputs[0].tolist()))],
        [lambda module, outputs: seen.append(("before", outputs[0].tolist()))],
    )
    x = weft.ones(2, requires_grad=True)
    (args,) = hook.setup_input_hook((x,))
    result = hook.setup_output_hook(args * 3)
    (result * 2).sum().backward()
    assert seen == [("before", [2.0, 2.0]), ("after", [6.0, 6.0], [2.0, 2.0])]


def test_random_tensors_to_measure_with():
    benchmark = weft.utils.benchmark
    sizes = [
        benchmark.FuzzedParameter("n", 4, 64, "loguniform"),
        benchmark.FuzzedParameter("m", distribution={1: 0.5, benchmark.ParameterAlias("n"): 0.5}),
    ]
    operand = benchmark.FuzzedTensor(
        "x", ("n", "m"), min_elements=8, max_elements=2000, probability_contiguous=0.0
    )
    fuzzer = benchmark.Fuzzer([sizes], [operand], seed=1)
    for tensors, facts, parameters in fuzzer.take(10):
        x = tensors["x"]
        assert x.shape == (parameters["n"], parameters["m"]) and 8 <= x.numel() <= 2000
        assert facts["x"]["numel"] == x.numel() and facts["x"]["is_contiguous"] == x.is_contiguous()
    assert 0 <= fuzzer.rejection_rate < 1
    with pytest.raises(ValueError, match="unique"):
        benchmark.Fuzzer([sizes[0], sizes[0]], [])


def test_operands_of_kinds_of_operations():
    from weft.utils.benchmark.op_fuzzers.binary import BinaryOpFuzzer
    from weft.utils.benchmark.op_fuzzers.spectral import SpectralOpFuzzer

    for tensors, _, parameters in BinaryOpFuzzer(seed=1).take(3):
        assert tensors["x"].dim() == parameters["dim"]
        weft.broadcast_shapes(tensors["x"].shape, tensors["y"].shape)
    for tensors, _, parameters in SpectralOpFuzzer(seed=1).take(3):
        assert tensors["x"].dtype is weft.float64 and tensors["x"].dim() == parameters["ndim"]


def test_settings_of_files():
    config = weft.utils.serialization.config
    outer = config.save.compute_crc32
    config.save.compute_crc32 = False
    assert weft.serialization.get_crc32_options() is False
    config.save.compute_crc32 = outer
    assert config.load.endianness is None and config.load.mmap is False


def test_devices_of_extensions():
    with pytest.raises(RuntimeError, match="in-tree device name: cuda"):
        weft.utils.rename_privateuse1_backend("cuda")
    with pytest.raises(RuntimeError, match="expects a str"):
        weft.utils.rename_privateuse1_backend(1)


@pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
def test_functions_with_a_default_device(lib):
    devices = importlib.import_module(f"{lib.__name__}.utils._device")

    @devices.set_device("meta")
    def places():
        yield lib.ones(1).device.type
        yield lib.nn.Linear(1, 1).weight.device.type

    assert list(places()) == ["meta", "meta"] and lib.ones(1).device.type == "cpu"
    assert devices.device_decorator(lib.device("meta"), lambda: lib.ones(1).device.type)() == "meta"
    assert devices.CURRENT_DEVICE is None
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        devices.set_device("meta")(type("C", (), {}))
    try:
        lib.set_default_device("meta:1")
        assert devices.CURRENT_DEVICE == lib.device("meta:1")
    finally:
        lib.set_default_device(None)
    assert devices.CURRENT_DEVICE is None
