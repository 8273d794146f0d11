"""Kernels compile for systems where nobody runs the tests (tests/targets.py)."""

from pathlib import Path

import pytest

TOOL = Path(__file__).with_name("targets.py")
PROGRAM = """\
import weft as torch
x = torch.arange(12.0).reshape(3, 4)
print(torch.softmax(x, -1).sum().item(), (x @ x.T)[0, 0].item(), x.half().mean().item(), x.sort(0)[0][0, 0].item())
"""


@pytest.mark.parametrize(
    "triple",
    [
        "x86_64-apple-macosx13.0",
        "arm64-apple-macosx13.0",
        "x86_64-pc-windows-msvc",
        "aarch64-unknown-linux-gnu",
    ],
)
def test_kernels_compile(run, tmp_path, triple):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run(TOOL, triple, "program.py", WEFT_CACHE_DIR=str(tmp_path / "cache"))
    result, counted = done.stdout.splitlines()
    assert [float(each) for each in result.split()] == pytest.approx([3.0, 14.0, 5.5, 0.0])
    assert int(counted.split()[0]) > 10
