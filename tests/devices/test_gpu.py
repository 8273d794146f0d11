"""The kernels of GPUs run by OpenCL on the processor: a device `cuda` that passes the tests of `test_calls.py` and its neighbours.

They run in processes of their own, because WEFT_CUDA decides once and for all what `cuda` is.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


@functools.cache
def opencl_devices():
    """How many devices OpenCL has here. The driver stays out of this process."""
    code = "from weft.devices._gpu.opencl import device_count; print(device_count())"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT).stdout)


@pytest.mark.parametrize("name", ["test_calls", "test_op_table", "test_properties"])
def test_the_device_cuda(name):
    if not opencl_devices():
        pytest.skip("no OpenCL driver: on Linux x86-64 intel-opencl-rt brings one")
    # An index out of range raises its error in the call, as on the CPU.
    environment = os.environ | {
        "WEFT_CUDA": "opencl",
        "TESTED_DEVICE": "cuda:0",
        "CUDA_LAUNCH_BLOCKING": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / f"{name}.py")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
