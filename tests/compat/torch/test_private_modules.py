"""Private modules of PyTorch that libraries import from."""

import subprocess
import sys

import pytest
import torch
import torch._linalg_utils
import torch._lowrank
from expressions import check, lines

import weft
import weft._linalg_utils
import weft._lowrank

EXPRESSIONS = """
torch._VF.norm_except_dim(torch.eye(2), 2, 0)
torch._VF.no_such_function  # raises
torch._linalg_utils.get_floating_dtype(torch.ones(2, dtype=torch.int64))
torch._linalg_utils.get_floating_dtype(torch.ones(2, dtype=torch.bfloat16))
torch._linalg_utils.get_floating_dtype(torch.ones(2, dtype=torch.float64))
torch._linalg_utils.matmul(None, torch.eye(2))
torch._linalg_utils.bform(torch.eye(2), torch.eye(2) * 2, torch.ones(2, 1))
torch._linalg_utils.qform(None, torch.ones(2, 1))
torch._linalg_utils.symeig(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))[0]
torch._linalg_utils.symeig(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), largest=True)[0]
torch._lowrank.get_approximate_basis(torch.ones(4, 3), 2).shape
torch.FloatTensor in torch._tensor_classes, torch.FloatStorage in torch._storage_classes
torch.UntypedStorage in torch._storage_classes
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)


def test_submodules_are_attributes_after_import():
    """Every module that `import torch` loads and weft has can be reached from the package, without another import."""
    loaded = "import torch, sys; print(*(name for name in sys.modules if name.startswith('torch.')))"
    paths = [name.partition(".")[2] for name in _output_of(loaded).split()]
    assert _output_of(UNREACHABLE.format(paths=paths)).split() == []


# Modules that can be imported, but are no attributes of their package.
UNREACHABLE = """
import importlib, weft
for path in {paths}:
    found = weft
    for part in path.split("."):
        found = getattr(found, part, None)
    if found is None:
        try:
            importlib.import_module("weft." + path)
        except ImportError:
            continue
        print(path)
"""


def _output_of(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_functions_are_those_of_the_package():
    assert weft._VF.lstm is weft.lstm and weft._lobpcg.lobpcg is weft.lobpcg and torch._VF.lstm
