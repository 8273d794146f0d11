"""Sparse tensors on a device give what they give on the CPU, without arrays on the host.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import numpy as np
import pytest
from drawn import HERE
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import weft as torch
from weft.layouts.sparse import coordinates

pytestmark = [
    pytest.mark.usefixtures("without_arrays"),
    pytest.mark.filterwarnings("ignore:Sparse .* support is in beta"),
]


def entries(seed, count=300, size=40):
    generator = torch.Generator().manual_seed(seed)
    indices = torch.randint(0, size, (2, count), generator=generator)
    return indices, torch.randn(count, generator=generator)


def coo(where, seed=0):
    indices, values = entries(seed)
    return torch.sparse_coo_tensor(indices.to(where), values.to(where), (40, 40))


def csr(where, seed=0):
    return coo(where, seed).coalesce().to_sparse_csr()


def dense(where, columns=8):
    return torch.randn(40, columns, generator=torch.Generator().manual_seed(9)).to(where)


def gradients(where, matrix):
    a, b = matrix(where).detach().requires_grad_(), dense(where).requires_grad_()
    torch.sparse.mm(a, b).square().sum().backward()
    return a.grad.to_dense(), b.grad


def embedded(where):
    weight = dense(where).requires_grad_()
    rows = entries(3)[0][0].to(where)
    torch.nn.functional.embedding(rows, weight, sparse=True).square().sum().backward()
    torch.optim.SparseAdam([weight]).step()
    return weight.detach()


CALLS = {
    "coalesce": lambda at: coo(at).coalesce().values(),
    "to_dense": lambda at: coo(at).to_dense(),
    "to_dense of csr": lambda at: csr(at).to_dense(),
    "csr to csc": lambda at: csr(at).to_sparse_csc().row_indices(),
    "csr to coo": lambda at: csr(at).to_sparse_coo().indices(),
    "dense to csr": lambda at: dense(at).relu().to_sparse_csr().col_indices(),
    "dense to bsr": lambda at: dense(at).to_sparse_bsr((2, 2)).values(),
    "coo @ dense": lambda at: coo(at) @ dense(at),
    "csr @ dense": lambda at: csr(at) @ dense(at),
    "csr @ vector": lambda at: csr(at) @ dense(at)[:, 0],
    "dense @ coo": lambda at: dense(at).t() @ coo(at),
    "coo @ coo": lambda at: (coo(at) @ coo(at, 1)).to_dense(),
    "csr @ csr": lambda at: (csr(at) @ csr(at, 1)).to_dense(),
    "coo + coo": lambda at: (coo(at).coalesce() + coo(at, 1).coalesce()).coalesce().values(),
    "coo * coo": lambda at: (coo(at).coalesce() * coo(at, 1).coalesce()).to_dense(),
    "csr + csr": lambda at: (csr(at) + csr(at, 1)).values(),
    "sum": lambda at: torch.sparse.sum(coo(at), 0).to_dense(),
    "softmax": lambda at: torch.sparse.softmax(coo(at).coalesce(), 1).to_dense(),
    "addmm": lambda at: torch.sparse.addmm(dense(at), coo(at), dense(at)),
    "sampled_addmm": lambda at: torch.sparse.sampled_addmm(csr(at), dense(at), dense(at).t()).values(),
    "mask": lambda at: dense(at, 40).sparse_mask(coo(at).coalesce()).values(),
    "transposed": lambda at: coo(at).t().coalesce().values(),
    "gradients": lambda at: gradients(at, lambda at: coo(at).coalesce()),
    "gradients of csr": lambda at: gradients(at, csr),
    "embedding": embedded,
}


@pytest.mark.parametrize("name", CALLS)
def test_results(name):
    expected, found = CALLS[name]("cpu"), CALLS[name](HERE)
    single = isinstance(expected, torch.Tensor)
    for result, wanted in zip(
        (found,) if single else found, (expected,) if single else expected, strict=True
    ):
        assert result.device == torch.device(HERE)
        torch.testing.assert_close(result.cpu(), wanted, rtol=1e-5, atol=1e-5)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 6), max_size=12).map(sorted), st.lists(st.integers(0, 6), max_size=12).map(sorted)
)
def test_sorted_keys_are_merged_as_by_a_walk(left, right):
    size, *places = coordinates._merge(*(np.array(each, np.int64) for each in (left, right)))
    found = coordinates.merged(
        *(torch.tensor(each, dtype=torch.int64, device=HERE) for each in (left, right))
    )
    assert (found.size, found.left.tolist(), found.right.tolist()) == (
        size,
        *(each.tolist() for each in places),
    )
