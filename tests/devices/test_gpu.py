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
        ("cuda", "test_factorizations"),
        ("cuda", "test_fragments"),
        ("cuda", "test_convolutions"),
        ("cuda", "test_counting"),
        ("cuda", "test_fourier"),
        ("cuda", "test_narrow_products"),
        ("cuda", "test_large"),
        ("cuda", "test_op_table"),
        ("cuda", "test_order"),
        ("cuda", "test_properties"),
        ("cuda", "test_sizes"),
        ("cuda", "test_sparse"),
        ("cuda", "test_special"),
        ("cuda", "test_spectra"),
        ("cuda", "test_triangles"),
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


def test_the_modules_xpu_and_accelerator(run_on_opencl):
    program = FOLDER / "xpu_module.py"
    options = ("-q", "-p", "no:cacheprovider", "-n", "0")
    run_on_opencl("-m", "pytest", *options, program, WEFT_XPU="opencl", PYTHONPATH=str(FOLDER.parent))
