"""`torch.ops.aten` of sparse tensors, against PyTorch."""

import pytest
import torch

import weft

CALLS = """_coalesced_(x, True); _indices(x); _values(x); _nnz(x); _to_sparse(d); _to_sparse.sparse_dim(d, 1); _sparse_mm(x, d)
_sparse_mm.reduce(c, d, "mean"); _sparse_addmm(d, x, d, beta=2, alpha=3); sparse_sampled_addmm(c, d, d); _sparse_sum(x); _sparse_sum.dim(x, [0])
_sparse_sum.dtype(x, dtype=t.float64); _sparse_softmax.default(x, 1, False); _sparse_softmax.int(x, 1); sparse_mask(d, x)
_sparse_coo_tensor_unsafe(x._indices(), x._values(), [4, 4]); sparse_coo_tensor.indices(x._indices(), x._values()); _to_sparse_csr(d)
sparse_coo_tensor.indices_size(x._indices(), x._values(), [5, 5]); _to_sparse_csc(d); _to_sparse_bsr(b, [2, 2]); _to_sparse_bsc(b, [2, 2])
_sparse_csr_tensor_unsafe(c.crow_indices(), c.col_indices(), c.values(), [3, 3]); _to_dense(x)"""


def evaluated(lib, call):
    dense = lib.tensor([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]])
    scope = {"t": lib, "x": dense.to_sparse(), "c": dense.to_sparse_csr(), "d": dense + 1, "b": lib.eye(4)}
    found = eval(f"t.ops.aten.{call}", scope)
    if isinstance(found, int):
        return found
    return str(found.layout), found.to_dense().tolist(), str(found.dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", [call.strip() for line in CALLS.splitlines() for call in line.split(";")])
def test_operator(call):
    assert evaluated(weft, call) == evaluated(torch, call)
