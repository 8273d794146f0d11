"""Runs the other tests of this folder in a process with WEFT_CUDA=opencl."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(
    os.environ.get("WEFT_CUDA") == "opencl", reason="this process is the one that is started here"
)
def test_the_folder_over_opencl(run):
    asked = run("-c", "from weft.devices._gpu import opencl; print(opencl.device_count())")
    if asked.stdout.strip() == "0":
        pytest.skip("no OpenCL driver was found: `pip install intel-opencl-rt` brings one")
    done = run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "0",
        HERE,
        WEFT_CUDA="opencl",
        PYTHONPATH=str(HERE.parent),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout and "failed" not in done.stdout
