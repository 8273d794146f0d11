"""The kernels of GPUs run by OpenCL on the processor: the devices `cuda` and `xpu` pass the tests of `test_calls.py` and its neighbours.

They run in processes of their own, because WEFT_CUDA and WEFT_XPU decide once and for all what these devices are.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("cuda", "test_attention"),
        ("cuda", "test_calls"),
        ("cuda", "test_fragments"),
        ("cuda", "test_convolutions"),
        ("cuda", "test_half_products"),
        ("cuda", "test_large"),
        ("cuda", "test_op_table"),
        ("cuda", "test_properties"),
        ("xpu", "test_calls"),
    ],
)
def test_kernels_of_gpus(device, name, run_on_opencl):
    # An index out of range raises its error in the call, as on the CPU.
    variables = {
        f"WEFT_{device.upper()}": "opencl",
        "TESTED_DEVICE": f"{device}:0",
        "CUDA_LAUNCH_BLOCKING": "1",
        "TESTED_STEP": "3",  # the driver compiles each kernel, which takes up to a second
    }
    run_on_opencl("-m", "pytest", "-q", "-p", "no:cacheprovider", FOLDER / f"{name}.py", **variables)


def test_the_module_xpu(run_on_opencl):
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
    run_on_opencl("-c", code, WEFT_XPU="opencl")
