"""The tests of this folder need a CUDA device. test_over_opencl.py runs them in a process whose CUDA device is OpenCL's."""

import pytest

import weft


@pytest.fixture(autouse=True)
def _needs_a_device(request):
    if request.path.name != "test_over_opencl.py" and not weft.cuda.is_available():
        pytest.skip("this process has no CUDA device; test_over_opencl.py runs the test on OpenCL")
