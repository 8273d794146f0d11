"""Runs the other tests of this folder in a process with WEFT_CUDA=opencl."""

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.skipif(
    os.environ.get("WEFT_CUDA") == "opencl", reason="this process is the one that is started here"
)
def test_the_folder_over_opencl(run_on_opencl):
    options = ("-q", "-p", "no:cacheprovider", "-n", "0")
    printed = run_on_opencl("-m", "pytest", *options, HERE, WEFT_CUDA="opencl", PYTHONPATH=str(HERE.parent))
    assert " passed" in printed and "failed" not in printed
