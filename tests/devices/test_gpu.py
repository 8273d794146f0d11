"""The kernels of GPUs run by OpenCL on the processor: the devices `cuda` and `xpu` pass the tests of `test_calls.py` and its neighbours.

They run in processes of their own, because WEFT_CUDA and WEFT_XPU decide once and for all what these devices are.
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


@pytest.mark.parametrize(
    ("device", "name"),
    [("cuda", "test_calls"), ("cuda", "test_op_table"), ("cuda", "test_properties"), ("xpu", "test_calls")],
)
def test_kernels_of_gpus(device, name):
    # An index out of range raises its error in the call, as on the CPU.
    environment = os.environ | {
        f"WEFT_{device.upper()}": "opencl",
        "TESTED_DEVICE": f"{device}:0",
        "CUDA_LAUNCH_BLOCKING": "1",
    }
    run(["-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / f"{name}.py")], environment)


def test_the_module_xpu():
    code = """
import weft as torch
assert torch.xpu.is_available() and torch.xpu.device_count() > 0 and torch.xpu.get_device_name()
assert torch.xpu.memory_allocated() == torch.xpu.memory_reserved() == 0
a = torch.ones(1000, device="xpu")
torch.xpu.synchronize()
assert a.is_xpu and torch.ones(1).xpu().device == a.device
del a
assert torch.xpu.memory_allocated("xpu:0") == 0 and torch.xpu.max_memory_allocated() >= 4000
assert torch.xpu.memory_reserved() >= 4000
torch.xpu.empty_cache()
assert torch.xpu.memory_reserved(0) == 0 and torch.xpu.max_memory_reserved() >= 4000
try:
    torch.xpu.synchronize("cuda:0")
except ValueError as error:
    assert "Expected a xpu device" in str(error)
else:
    raise AssertionError
"""
    run(["-c", code], os.environ | {"WEFT_XPU": "opencl"})


def run(arguments, environment):
    """Run Python in a process of its own, if there is a device for it."""
    if not opencl_devices():
        pytest.skip("no OpenCL driver: on Linux x86-64 intel-opencl-rt brings one")
    command = [sys.executable, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
