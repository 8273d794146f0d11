"""`torch.xpu` and `torch.accelerator` on a device of OpenCL; `test_gpu.py` runs these tests in a process that has one."""

import gc

import pytest

import weft


def test_devices():
    assert weft.xpu.is_available() and weft.xpu.device_count() > 0 and weft.xpu.get_device_name()
    assert weft.ones(1).xpu().device == weft.device("xpu:0") and weft.xpu.current_device() == 0
    x = weft.ones(3, device="xpu")
    with weft.xpu.device(0), weft.xpu.device_of(x):
        assert (x + 1).sum().item() == 6
    properties = weft.xpu.get_device_properties()
    capability = weft.xpu.get_device_capability("xpu:0")
    assert properties.total_memory == capability["total_memory"] > 0 and capability["type"] in ("cpu", "gpu")
    assert repr(properties).startswith("_XpuDeviceProperties(name=")
    assert weft.xpu.is_bf16_supported() and not weft.xpu.is_tf32_supported()
    with pytest.raises(ValueError, match="Expected a xpu device"):
        weft.xpu.synchronize("cuda:0")
    with pytest.raises(AssertionError, match="Invalid device id"):
        weft.xpu.get_device_properties(99)
    weft.xpu.synchronize()


def test_memory():
    gc.collect()
    weft.xpu.empty_cache()
    before, reserved = weft.xpu.memory_allocated(), weft.xpu.memory_reserved()
    x = weft.ones(1000, device="xpu")
    assert (
        weft.xpu.memory_allocated("xpu:0")
        == before + 4096
        == weft.xpu.memory_stats()["active_bytes.all.current"]
    )
    assert (
        sum(each["total_size"] for each in weft.xpu.memory_snapshot())
        == weft.xpu.memory_reserved()
        >= reserved
    )
    del x
    assert weft.xpu.memory_allocated(0) == before and weft.xpu.max_memory_allocated() >= before + 4096
    weft.xpu.reset_peak_memory_stats()
    assert weft.xpu.max_memory_allocated() == before
    assert 0 < weft.xpu.mem_get_info()[0] <= weft.xpu.mem_get_info()[1]
    pool = weft.xpu.MemPool()
    with weft.xpu.use_mem_pool(pool):
        y = weft.ones(10, device="xpu")
    assert len(pool.snapshot()) == 1 and y.sum().item() == 10
    assert weft.xpu.get_per_process_memory_fraction() == 1.0


def test_streams_and_events():
    stream = weft.xpu.Stream()
    assert stream != weft.xpu.current_stream() and stream.device_type == 12
    assert repr(stream) == "torch.xpu.Stream(device=xpu:0 sycl_queue=0x0)"
    with weft.xpu.stream(stream):
        assert weft.xpu.current_stream() == weft.accelerator.current_stream() == stream
    start, end = weft.xpu.Event(enable_timing=True), weft.xpu.Event(enable_timing=True)
    assert repr(start) == "torch.xpu.Event(uninitialized)"
    start.record(), end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0 and stream.record_event().device == weft.device("xpu:0")


def test_random_numbers():
    weft.xpu.manual_seed(3)
    assert weft.xpu.initial_seed() == 3 and len(weft.xpu.default_generators) == weft.xpu.device_count()
    state = weft.xpu.get_rng_state()
    drawn = weft.rand(5, device="xpu").tolist()
    weft.xpu.set_rng_state(state)
    assert weft.rand(5, device="xpu").tolist() == drawn


def test_graphs():
    x = weft.ones(5, device="xpu")
    graph = weft.xpu.XPUGraph()
    with weft.xpu.graph(graph):
        y = x + 1
    x.fill_(3)
    graph.replay()
    assert y.tolist() == [4.0] * 5 and not weft.xpu.is_current_stream_capturing()
    square = weft.xpu.make_graphed_callables(lambda a: a * a, (x.clone(),))
    assert square(x).tolist() == [9.0] * 5


def test_the_accelerator():
    accelerator = weft.accelerator
    assert accelerator.is_available() and accelerator.device_count() == weft.xpu.device_count()
    assert accelerator.current_accelerator(check_available=True) == weft.device("xpu")
    assert weft.get_device_module() is weft.xpu and weft.Stream().device == weft.device("xpu:0")
    accelerator.set_device_index(0)
    with accelerator.device_index(0):
        assert accelerator.current_device_index() == accelerator.current_device_idx() == 0
    assert weft.float16 in accelerator.get_device_capability()["supported_dtypes"]
    accelerator.set_stream(weft.xpu.Stream())
    accelerator.synchronize()
    x = weft.ones(4, device=accelerator.current_accelerator())
    assert accelerator.memory_allocated() == weft.xpu.memory_allocated() > 0 and x.is_xpu
    assert accelerator.memory_stats() == weft.xpu.memory_stats()
    assert accelerator.get_memory_info()[1] == weft.xpu.get_device_properties().total_memory
    accelerator.reset_peak_memory_stats()
    accelerator.reset_accumulated_memory_stats()
    accelerator.empty_cache()
    assert accelerator.max_memory_reserved() >= accelerator.memory_reserved() > 0
    assert weft.ones(3).pin_memory().is_pinned()
    graph = accelerator.Graph()
    with weft.Stream(), graph:
        y = x + 1
    graph.replay()
    assert y.tolist() == [2.0] * 4 and graph.pool()
