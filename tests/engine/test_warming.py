"""What `weft warm` compiles is enough for the same program with other sizes; few kinds of kernels serve all sizes."""

import os
import subprocess
import sys

import pytest

import weft as torch
from weft.engine import kernel

CALLS = {
    "reductions": "x = torch.rand({rows}, {columns}); x.sum(0); x.sum(1); x.amax(0); x.argmax(1); x.double().sum(1)",
    "products": "x = torch.rand({rows}, {columns}); x @ torch.rand({columns}, {rows}); x @ x.t()",
    "workers": "x = torch.rand({rows} * 1000, {columns}); -x",
    "calls": "x = torch.rand({rows}, {columns})\nfor k in range(30000): x.relu()",
}
# Counts what LLVM compiles.
COUNTING = """
import weft as torch
from weft.engine import host
compiled, count = host.compiled, 0
def counting(*args):
    global count
    count += 1
    return compiled(*args)
host.compiled = counting
"""


def run(program, tmp_path, **environment):
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path), **environment}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("name", CALLS)
def test_other_sizes_compile_nothing_after_warming(name, tmp_path):
    tmp_path.chmod(0o700)
    run("import weft as torch\n" + CALLS[name].format(rows=40, columns=30), tmp_path, WEFT_WARM="1")
    many = [CALLS[name].format(rows=rows, columns=columns) for rows, columns in [(3, 5), (70, 41), (17, 2)]]
    assert run("\n".join([COUNTING, *many, "print(count)"]), tmp_path) == "0\n"


def test_one_element_runs_the_kernel_of_many(monkeypatch):
    a, b = torch.rand(5), torch.rand(5)
    expected = torch.exp(a * 3).sub(b)[2].item()
    kernels = []
    compiled = kernel.compiled
    monkeypatch.setattr(kernel, "compiled", lambda found: kernels.append(found) or compiled(found))
    for one in (slice(2, 3), 2):
        assert torch.exp(a[one] * 3).sub(b[one]).item() == expected
    assert kernels and {each.strides for each in kernels} <= {"cc", "ccc"}
