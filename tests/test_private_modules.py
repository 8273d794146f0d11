"""Private modules of PyTorch that libraries import from."""

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


def test_functions_are_those_of_the_package():
    assert weft._VF.lstm is weft.lstm and weft._lobpcg.lobpcg is weft.lobpcg and torch._VF.lstm
