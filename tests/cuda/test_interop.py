"""Exchange of memory with other libraries, and the classes of old."""

from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import weft
from weft.devices import cuda

HERE = "cuda"


class Foreign:
    """An array of another library that describes its memory in one of two ways."""

    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self):
        return self.tensor.__cuda_array_interface__


class Capsules:
    def __init__(self, tensor):
        self.tensor, self.given = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        self.given.append(options)
        return self.tensor.__dlpack__(**options)


def test_the_interface_describes_the_memory():
    x = weft.arange(6.0, device=HERE).reshape(2, 3)
    described = x.__cuda_array_interface__
    assert described == {
        "typestr": "<f4",
        "shape": (2, 3),
        "strides": None,
        "data": (x.data_ptr(), False),
        "version": 2,
    }
    assert x.t().__cuda_array_interface__["strides"] == (4, 12)
    assert x[1:].__cuda_array_interface__["data"][0] == x.data_ptr() + 12
    assert x.to(weft.bfloat16).__cuda_array_interface__["typestr"] == "<V2"
    assert (x > 0).__cuda_array_interface__["typestr"] == "|b1"
    assert weft.empty(0, device=HERE).__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(weft.ones(1), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = weft.ones(1, device=HERE, requires_grad=True).__cuda_array_interface__


@pytest.mark.parametrize(
    "dtype", [weft.float32, weft.float64, weft.float16, weft.bfloat16, weft.int64, weft.uint8, weft.bool]
)
def test_arrays_of_other_libraries_share_memory(dtype):
    x = weft.arange(6, device=HERE).reshape(2, 3).to(dtype)
    for source in (Foreign(x), Foreign(x.t()), Capsules(x), Capsules(x.t()[1:])):
        is_capsule = isinstance(source, Capsules)
        shared = weft.from_dlpack(source) if is_capsule else weft.as_tensor(source, device=HERE)
        expected = source.tensor
        assert shared.device == x.device and shared.dtype is dtype and shared.stride() == expected.stride()
        assert shared.data_ptr() == expected.data_ptr() and shared.tolist() == expected.tolist()
        assert weft.asarray(source).data_ptr() == expected.data_ptr()
    copy = weft.tensor(Foreign(x), device=HERE)
    assert copy.device == x.device and copy.data_ptr() != x.data_ptr() and copy.tolist() == x.tolist()
    assert weft.as_tensor(Foreign(x)).device.type == weft.tensor(Foreign(x)).device.type == "cpu"
    assert weft.as_tensor(Foreign(x)).tolist() == x.tolist()


def test_memory_outlives_its_owner():
    shared = weft.from_dlpack(weft.arange(1000.0, device=HERE))
    by_interface = weft.asarray(Foreign(weft.arange(1000.0, device=HERE)))
    others = [weft.zeros(1000, device=HERE) for _ in range(10)]
    assert shared.tolist() == by_interface.tolist() == list(range(1000)) and len(others) == 10


def test_capsules():
    x = weft.arange(4.0, device=HERE)
    assert tuple(x.__dlpack_device__()) == (2, 0)
    source = Capsules(x)
    assert weft.from_dlpack(source).data_ptr() == x.data_ptr()
    assert source.given[0]["stream"] == 1 and source.given[0]["max_version"][0] == 1
    copy = weft.from_dlpack(source, copy=True)
    assert copy.data_ptr() != x.data_ptr() and copy.tolist() == x.tolist()
    assert weft.from_dlpack(weft.to_dlpack(x)).data_ptr() == x.data_ptr()
    assert weft.from_dlpack(x, device="cpu").tolist() == x.tolist()
    with pytest.raises(BufferError, match="per-thread"):
        x.__dlpack__(stream=2)
    with pytest.raises(AssertionError, match="unsupported stream on CUDA: 0"):
        x.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="require gradient"):
        x.clone().requires_grad_().__dlpack__()
    with pytest.raises((RuntimeError, BufferError)):  # NumPy reads memory of the host only
        np.from_dlpack(x)


def test_capsules_of_rocm(monkeypatch):
    """DLPack has another number for GPUs of AMD, and their default stream is number 0."""
    x = weft.arange(4.0, device=HERE)
    monkeypatch.setattr(cuda, "driver", lambda: "hip")
    assert tuple(x.__dlpack_device__()) == (10, 0)
    source = Capsules(x)
    shared = weft.from_dlpack(source)
    assert shared.data_ptr() == x.data_ptr() and shared.device == x.device and source.given[0]["stream"] == 0
    for stream in (1, 2):
        with pytest.raises(AssertionError, match=f"unsupported stream on ROCm: {stream}"):
            x.__dlpack__(stream=stream)


def test_what_is_written_before_is_there():
    x = weft.zeros(300_000, device=HERE)
    y = (x + 1) * 2  # large enough to be deferred
    assert weft.from_dlpack(y).sum().item() == 600_000
    z = (x + 1) * 3
    assert weft.asarray(Foreign(z)).sum().item() == 900_000


def test_classes_of_old():
    x = weft.ones(2, device=HERE)
    assert x.type() == "torch.cuda.FloatTensor" and isinstance(x, weft.cuda.FloatTensor)
    assert not isinstance(x, weft.FloatTensor) and not isinstance(x.cpu(), weft.cuda.FloatTensor)
    assert weft.cuda.LongTensor(2, 3).device.type == HERE and weft.cuda.FloatTensor([1, 2]).tolist() == [1, 2]
    assert weft.cuda.HalfTensor.is_cuda and not weft.HalfTensor.is_cuda
    for kind in ("torch.cuda.DoubleTensor", weft.cuda.DoubleTensor):
        assert (weft.ones(1).type(kind).device.type, weft.ones(1).type(kind).dtype) == (HERE, weft.float64)
    assert x.type("torch.FloatTensor").device.type == "cpu"
    with pytest.warns(UserWarning, match="deprecated"):
        weft.set_default_tensor_type(weft.cuda.FloatTensor)
    try:
        assert weft.ones(1).device.type == HERE
    finally:
        with pytest.warns(UserWarning, match="deprecated"):
            weft.set_default_tensor_type("torch.FloatTensor")
    assert weft.ones(1).device.type == "cpu"


def test_tensors_of_devices_are_not_sent_to_processes():
    with pytest.raises(NotImplementedError, match="a tensor on cuda:0 cannot be sent to another process"):
        ForkingPickler.dumps(weft.ones(3, device="cuda"))
