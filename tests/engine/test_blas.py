"""The BLAS inside SciPy is started on first use."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
import weft as torch
a = torch.eye(60)
in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use + (int(sys.argv[1]) << 20), resource.getrlimit(resource.RLIMIT_AS)[1]))
try:
    print(eval(sys.argv[2]))
except RuntimeError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of addresses are Linux's")
@pytest.mark.parametrize(
    "call", ["torch.linalg.ldl_factor(a)", "torch.special.gammainc(a, a)", "torch.fft.fft(a)"]
)
def test_too_little_memory_for_scipy_is_an_error(call):
    """OpenBLAS would try for ever to map the memory that it starts with."""
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, "64", call], capture_output=True, text=True, timeout=60
    )
    assert "MiB of addresses to start" in child.stdout, child.stderr
