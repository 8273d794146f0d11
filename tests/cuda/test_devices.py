"""Which CUDA devices there are, which is the current one, and where tensors go."""

import pytest

import weft
from weft import nn
from weft.core import device as places


def test_the_devices_are_counted_and_described():
    assert weft.cuda.is_available() and weft.cuda.device_count() >= 1
    properties = weft.cuda.get_device_properties("cuda:0")
    assert properties.name == weft.cuda.get_device_name() and properties.name
    assert properties.total_memory > 1 << 20 and properties.multi_processor_count >= 1
    assert weft.cuda.get_device_capability(0) == (properties.major, properties.minor)
    assert repr(properties).startswith("_CudaDeviceProperties(name='")
    weft.cuda.init()
    assert weft.cuda.is_initialized()
    weft.cuda.synchronize("cuda")
    assert weft.cuda.is_bf16_supported()


def test_asking_does_not_start_a_device(run):
    code = "import weft; print(weft.cuda.is_available(), weft.cuda.memory_allocated(), weft.cuda.is_initialized())"
    assert run("-c", code).stdout.split() == ["True", "0", "False"]


def test_the_import_loads_no_driver(run):
    code = "import sys, weft; print(any('devices._gpu' in name or 'devices.cuda' in name for name in sys.modules))"
    assert run("-c", code).stdout.split() == ["False"]


def test_a_device_that_is_not_there():
    missing = weft.cuda.device_count()
    for call in (
        lambda: weft.cuda.set_device(missing),
        lambda: weft.ones(2, device=missing),
        lambda: weft.cuda.device(missing).__enter__(),
        lambda: weft.cuda.memory_allocated(missing),
        lambda: weft.cuda.mem_get_info(missing),
    ):
        with pytest.raises(weft.AcceleratorError, match="^CUDA error: invalid device ordinal"):
            call()
    with pytest.raises(AssertionError, match="Invalid device id"):
        weft.cuda.get_device_name(missing)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        weft.cuda.set_device("cpu")
    assert weft.cuda.current_device() == 0


def test_the_current_device_is_what_cuda_means(second):
    created = []

    def make():  # 20 times, so that calls are remembered
        for _ in range(20):
            created.append(weft.zeros(2, device="cuda").device.index)

    make()
    with weft.cuda.device(1):
        assert weft.cuda.current_device() == weft.accelerator.current_device_index() == 1
        make()
        assert weft.ones(1).cuda().device == second and weft.ones(1).to("cuda").device == second
        assert nn.Linear(1, 1).cuda().weight.device == second
        with weft.cuda.device_of(weft.ones(1, device="cuda:0")):
            assert weft.cuda.current_device() == 0
        with weft.cuda.device_of(weft.ones(1)):
            assert weft.cuda.current_device() == 1
    make()
    assert created == [0] * 20 + [1] * 20 + [0] * 20
    with weft.accelerator.device_index(1), weft.device("cuda"):
        assert weft.ones(1).device == second
        weft.cuda.set_device(0)
        assert weft.ones(1).device.index == 0
    assert weft.cuda.current_device() == 0


def test_tensors_move_between_devices(second):
    here = weft.arange(6.0, device="cuda:0")
    there = here.cuda(1) * 2
    assert there.device == second and there.cpu().tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    with pytest.raises(RuntimeError, match="cuda:0"):
        here + there


def test_the_accelerator_is_cuda():
    accelerator = weft.accelerator
    assert accelerator.is_available() and accelerator.device_count() == weft.cuda.device_count()
    assert accelerator.current_accelerator() == weft.device("cuda")
    accelerator.synchronize()
    accelerator.set_device_index(0)
    assert accelerator.current_device_idx() == 0
    assert weft.bfloat16 in accelerator.get_device_capability()["supported_dtypes"]
    assert weft._C._get_accelerator() == weft.device("cuda")
    assert weft._utils._get_available_device_type() == "cuda"
    assert weft._utils._get_all_device_indices() == list(range(weft.cuda.device_count()))
    graph, x = accelerator.Graph(), weft.ones(3, device="cuda")
    with weft.Stream(), graph:
        y = x + 1
    graph.replay()
    assert y.tolist() == [2, 2, 2]


def test_every_way_to_name_the_device():
    first = weft.device("cuda", 0)
    for where in ("cuda", "cuda:0", 0, weft.device("cuda"), first):
        assert weft.ones(2, device=where).device == first
        assert weft.ones(2).to(where).device == first
        assert nn.Linear(2, 2, device=where).weight.device == first
        assert nn.Linear(2, 2).to(where).bias.device == first
    assert weft.ones(2).cuda(0).is_cuda and weft.ones(2).to("cuda", non_blocking=True).is_cuda
    assert repr(weft.ones(1, device="cuda")) == "tensor([1.], device='cuda:0')"
    try:
        weft.set_default_device("cuda")
        assert weft.ones(2).device == weft.tensor([1]).device == weft.arange(3).device == first
    finally:
        weft.set_default_device(None)
    assert places.get_default_device() == weft.device("cpu")


def test_operands_on_different_devices():
    with pytest.raises(RuntimeError, match="cuda:0.*cpu"):
        weft.ones(2, device="cuda") + weft.ones(2)
