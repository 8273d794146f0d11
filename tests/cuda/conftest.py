"""The tests of this folder need a CUDA device. test_over_opencl.py runs them in a process whose CUDA device is OpenCL's."""

import pytest

import weft


@pytest.fixture(autouse=True)
def _needs_a_device(request):
    if request.path.name != "test_over_opencl.py" and not weft.cuda.is_available():
        pytest.skip("this process has no CUDA device; test_over_opencl.py runs the test on OpenCL")


@pytest.fixture
def second(monkeypatch):
    """A second device, which is the first by another number."""
    from weft.devices import cuda
    from weft.devices._gpu.backend import Gpu

    where = weft.device("cuda", 1)
    runtime = weft.device("cuda", 0).backend.runtime
    monkeypatch.setattr(cuda, "device_count", lambda: 2)
    queue = runtime.queue
    monkeypatch.setattr(where, "_backend", Gpu(where, runtime))
    runtime.queue = queue  # work of both numbers is that of the first one's streams
    return where
