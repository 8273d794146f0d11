"""Eigenvalues and principal components of sparse matrices, compared with those of dense ones and with PyTorch's."""

import numpy as np
import pytest
import torch

import weft
from weft.layouts.sparse import eigen


def chain(size):
    """A symmetric matrix of three diagonals."""
    weft.manual_seed(size)
    return (
        weft.diag(weft.rand(size) + 2)
        - weft.diag(weft.ones(size - 1), 1)
        - weft.diag(weft.ones(size - 1), -1)
    )


@pytest.mark.parametrize("rows", [20, 500])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg(rows, layout, largest):
    assert 20 < eigen._DENSE < 500
    dense = chain(rows).double()
    matrix = dense.to_sparse(layout=getattr(weft, layout))
    values, vectors = weft.lobpcg(matrix, 3, largest=largest)
    assert tuple(vectors.shape) == (rows, 3)
    np.testing.assert_allclose(values.numpy(), weft.lobpcg(dense, 3, largest=largest)[0].numpy(), rtol=1e-9)
    np.testing.assert_allclose((dense @ vectors).numpy(), (vectors * values).numpy(), atol=1e-9)


@pytest.mark.parametrize("sparse_b", [True, False])
def test_generalized_problem(sparse_b):
    a, b = chain(500).double(), chain(500).double() + 2 * weft.eye(500, dtype=weft.float64)
    values, vectors = weft.lobpcg(a.to_sparse(), 2, b.to_sparse_csr() if sparse_b else b)
    np.testing.assert_allclose((a @ vectors).numpy(), (b @ vectors * values).numpy(), atol=1e-9)


def test_gradients_of_eigenvalues():
    found = []
    for make in (lambda x: x.to_sparse(), lambda x: x):
        matrix = make(chain(30).double()).requires_grad_()
        weft.lobpcg(matrix, 2)[0].sum().backward()
        found.append(matrix.grad.to_dense())
    pattern = chain(30) != 0
    np.testing.assert_allclose(found[0].numpy(), (found[1] * pattern).numpy(), atol=1e-12)


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_principal_components(shape, layout):
    torch.manual_seed(0)
    data = torch.randn(shape, dtype=torch.float64) * (torch.rand(shape) < 0.3)
    torch.manual_seed(1)
    expected = torch.pca_lowrank(data.to_sparse(), 4)[1]
    weft.manual_seed(1)
    matrix = weft.from_numpy(data.numpy()).to_sparse(layout=getattr(weft, layout))
    U, S, V = weft.pca_lowrank(matrix, 4)
    np.testing.assert_allclose(S.numpy(), expected.numpy(), rtol=1e-9)
    assert (U.shape, V.shape) == ((shape[0], 4), (shape[1], 4))


def test_low_rank_of_a_difference():
    torch.manual_seed(0)
    data, less = torch.randn(12, 9, dtype=torch.float64), torch.rand(12, 9, dtype=torch.float64)
    torch.manual_seed(1)
    expected = torch.svd_lowrank(data.to_sparse(), 3, M=less)[1]
    weft.manual_seed(1)
    found = weft.svd_lowrank(weft.from_numpy(data.numpy()).to_sparse(), 3, M=weft.from_numpy(less.numpy()))[1]
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9)
