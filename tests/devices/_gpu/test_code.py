"""The code of kernels for NVIDIA's GPUs is made, and assembled by NVIDIA's assembler. No driver takes part."""

import functools
import importlib.util
import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from weft.devices._gpu.code import compiled
from weft.devices._gpu.cuda import architecture
from weft.devices._gpu.target import NVPTX


@functools.cache
def kernels():
    """(program, LLVM IR) of many programs."""
    script = Path(__file__).with_name("recorded_kernels.py")
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def assembler():
    """The path of ptxas of the package nvidia-cuda-nvcc-cu12, or None."""
    try:
        package = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        return None
    found = (
        [Path(folder) / "bin" / "ptxas" for folder in package.submodule_search_locations or ()]
        if package
        else []
    )
    return next((path for path in found if path.exists()), None)


def assembled(code, processor, folder):
    """What ptxas says of the code: registers and spills."""
    source = folder / "kernel.ptx"
    source.write_bytes(code)
    command = [str(assembler()), "-arch", processor, "-v", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + code.decode()
    return done.stderr


@pytest.mark.parametrize("processor", ["sm_70", "sm_80", "sm_90", "sm_100"])
def test_kernels_of_all_kinds_are_assembled(processor, tmp_path):
    codes = [(name, compiled(NVPTX, ir, processor).rstrip(b"\0")) for name, ir in kernels()]
    for _, code in codes:
        assert f".target {processor}".encode() in code and b".entry kernel(" in code
    if assembler() is None:
        pytest.skip("no ptxas: on Linux x86-64 nvidia-cuda-nvcc-cu12 brings one")
    for name, code in codes:
        report = assembled(code, processor, tmp_path)
        spilled = sum(int(nbytes) for nbytes in re.findall(r"(\d+) bytes spill", report))
        if spilled:
            warnings.warn(f"{processor}: a kernel of {name} spills registers: {report}", stacklevel=1)


def test_a_processor_runs_the_code_of_the_newest_that_it_knows():
    assert architecture((8, 0)) == "sm_80"
    assert architecture((8, 8)) == "sm_87"
    assert architecture((6, 1)) == "sm_70"
