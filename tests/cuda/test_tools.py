"""Ranges and marks for profilers, the runtime library, and what tells the state of a device."""

import sys
import threading
from types import SimpleNamespace

import pytest

import weft
from weft.cuda import nvtx, profiler


def test_ranges_nest(monkeypatch):
    counter = nvtx._Counter()  # also where NVIDIA's library is installed
    monkeypatch.setattr(nvtx, "_tools", lambda: counter)
    assert [nvtx.range_push("a"), nvtx.range_push("b")] == [0, 1]
    depths = []
    thread = threading.Thread(target=lambda: depths.append(nvtx.range_push("other")))
    thread.start(), thread.join()
    nvtx.mark("here")
    assert depths == [0] and [nvtx.range_pop(), nvtx.range_pop()] == [1, 0]
    assert nvtx.range_pop() < 0 and nvtx.range_push("c") == 0
    with nvtx.range("step {}", 3):
        assert nvtx.range_push("d") == 2 and nvtx.range_pop() == 2
    assert nvtx.range_pop() == 0

    @nvtx.range("function")
    def depth():
        return nvtx.range_push("inside") - (nvtx.range_pop() and 0)

    assert depth() == depth() == 1
    first, second = nvtx.range_start("x"), nvtx.range_start("y")
    assert first != second
    nvtx.range_end(second), nvtx.range_end(first)


def test_the_library_of_nvidia_is_told(monkeypatch):
    calls = []

    def note(name):
        return lambda *arguments: calls.append((name, *arguments)) or 7

    names = ("nvtxRangePushA", "nvtxRangePop", "nvtxMarkA")
    monkeypatch.setattr(nvtx, "_tools", lambda: SimpleNamespace(**{name: note(name) for name in names}))
    assert nvtx.range_push("a") == 7 and nvtx.range_pop() == 7
    nvtx.mark("b")
    assert calls == [("nvtxRangePushA", b"a"), ("nvtxRangePop",), ("nvtxMarkA", b"b")]


def test_the_profiler_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(weft.device("cuda:0").backend.runtime, "profile", told.append)
    with profiler.profile():
        assert told == [True]
    weft.cuda.cudart().cudaProfilerStart()
    assert told == [True, False, True]


def test_the_runtime_library():
    cudart = weft.cuda.cudart()
    assert cudart.cudaMemGetInfo(0)[1] == weft.cuda.get_device_properties().total_memory
    assert cudart.cudaError.success == 0 == weft.cuda.cudaStatus.SUCCESS
    weft.cuda.check_error(0)
    with pytest.raises(weft.cuda.CudaError, match=r"\(2\)"):
        weft.cuda.check_error(2)
    with pytest.raises(NotImplementedError, match="cudaHostRegister"):
        cudart.cudaHostRegister(0, 10, 0)


def test_transfers_that_wait_are_reported():
    x = weft.ones(3, device="cuda")
    assert weft.cuda.get_sync_debug_mode() == 0
    try:
        weft.cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            assert x.sum().item() == 3
        weft.cuda.set_sync_debug_mode(2)
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            x.cpu()
        weft.cuda.synchronize()
    finally:
        weft.cuda.set_sync_debug_mode("default")
    assert x.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        weft.cuda.set_sync_debug_mode("loud")


class Nvml:
    """Stands for the module pynvml."""

    def nvmlInit(self):
        pass

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetHandleByUUID(self, name):
        return name

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(used=1000)

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=40, memory=handle)

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return (handle, sensor)

    def nvmlDeviceGetPowerUsage(self, handle):
        return 70_000

    def nvmlDeviceGetClockInfo(self, handle, clock):
        return 1000 + clock

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=17, usedGpuMemory=1 << 20)] if handle == 3 else []


def test_the_state_of_a_device(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ModuleNotFoundError, match="nvidia-ml-py does not seem to be installed"):
        weft.cuda.temperature()
    assert weft.cuda.list_gpu_processes() == "pynvml module not found, please install nvidia-ml-py"
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert weft.cuda.device_memory_used() == 1000 and weft.cuda.utilization(0) == 40
    assert weft.cuda.power_draw() == 70_000 and weft.cuda.clock_rate() == 1001
    assert weft.cuda.temperature() == (0, 0)
    assert weft.cuda.list_gpu_processes() == "GPU:0\nno processes are running"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-abc")
    assert weft.cuda.memory_usage() == 3
    assert weft.cuda.memory_usage(1) == "GPU-abc"
    assert weft.cuda.list_gpu_processes().endswith("process         17 uses        1.000 MB GPU memory")


def test_what_libraries_call():
    with weft.cuda._DeviceGuard(0):
        assert weft.cuda._exchange_device(-1) == -1 and weft.cuda._exchange_device(0) == 0
    weft.cuda.manual_seed(1)
    weft.rand(5, device="cuda")
    offset = weft.cuda._get_rng_state_offset()
    assert offset > 0
    weft.cuda._set_rng_state_offset(offset + 4)
    assert weft.cuda._get_rng_state_offset() == offset + 4


def test_what_is_asked_before_work():
    weft.cuda.init()
    weft.cuda._lazy_init()
    weft.cuda.ipc_collect()
    assert weft.cuda.is_initialized() and "sm_90" in weft.cuda.get_arch_list()
    assert "-gencode compute=compute_90,code=sm_90" in weft.cuda.get_gencode_flags()
    assert weft.cuda.is_tf32_supported() == (weft.cuda.get_device_capability() >= (8, 0))


def test_operations_are_not_marked():
    with (
        pytest.raises(NotImplementedError, match="torch.cuda.nvtx.range"),
        weft.autograd.profiler.emit_nvtx(),
    ):
        pass
    with weft.autograd.profiler.emit_nvtx(enabled=False):
        pass


def test_functions_in_cpp_do_not_run():
    square = weft.cuda.jiterator._create_jit_fn("template <typename T> T square(T x) { return x * x; }")
    with pytest.raises(NotImplementedError, match="does not compile functions in C"):
        square(weft.ones(3, device="cuda"))
