"""The rules of sparse tensors are complete, whichever function makes the first one."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "first", ["torch.ones(2, 2).to_sparse()", "torch.zeros(2, 2, layout=torch.sparse_csr)"]
)
def test_the_first_sparse_tensor_of_a_process_has_all_rules(first):
    program = f"import weft as torch; x = {first}; print(x._nnz(), (x * 2).to_dense().sum().item())"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout in ("4 8.0\n", "0 0.0\n"), found.stderr
