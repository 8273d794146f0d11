"""Sparse systems of linear equations, and matrices of SciPy's."""

import numpy as np
import pytest
import scipy.sparse
import torch

import weft
from weft.layouts.sparse.scipy import to_scipy

LAYOUTS = {"coo": (), "csr": (), "csc": (), "bsr": ((2, 2),), "bsc": ((2, 2),)}


def system(layout, dtype="float64", columns=()):
    generator = np.random.default_rng(0)
    matrix = generator.normal(size=(6, 6)) * (generator.random((6, 6)) < 0.4) + 4 * np.eye(6)
    right = generator.normal(size=(6, *columns))
    if dtype == "complex128":
        matrix, right = matrix * (1 + 0.5j), right * (2 - 1j)
    dense = weft.tensor(matrix, dtype=getattr(weft, dtype))
    sparse = getattr(dense, f"to_sparse_{layout}")(*LAYOUTS[layout])
    return dense, sparse, weft.tensor(right, dtype=getattr(weft, dtype))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_spsolve(layout, columns, dtype):
    dense, sparse, right = system(layout, dtype, columns)
    found = weft.sparse.spsolve(sparse, right)
    assert weft.allclose(found, weft.linalg.solve(dense, right), atol=1e-5)
    right = right.t() if columns else right
    found = weft.sparse.spsolve(sparse, right, left=False)
    assert weft.allclose(found @ dense, right, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("layout", ["coo", "csr", "bsc"])
def test_gradients(layout, dtype):
    dense, sparse, right = system(layout, dtype, (2,))
    dense, sparse, one, two = (each.clone().requires_grad_() for each in (dense, sparse, right, right))
    for found in (weft.linalg.solve(dense, one), weft.sparse.spsolve(sparse, two)):
        (found * found.conj()).sum().abs().backward()
    there = sparse.detach().to_dense() != 0
    assert weft.allclose(sparse.grad.to_dense() * there, dense.grad * there) and weft.allclose(
        one.grad, two.grad
    )


def test_refusals():
    _, sparse, right = system("csr")
    for matrix, other in (
        (sparse[:3], right),
        (sparse, right[:3]),
        (sparse, right.float()),
        (sparse * 0, right),
    ):
        with pytest.raises(RuntimeError):
            weft.sparse.spsolve(matrix, other)


# ---- SciPy's matrices ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_to_scipy_and_back_in_the_same_memory(layout):
    dense, sparse, _ = system(layout)
    matrix = to_scipy(sparse)
    assert isinstance(matrix, getattr(scipy.sparse, f"{layout}_array"))
    assert np.array_equal(matrix.toarray(), dense.numpy())
    matrix.data *= 2
    assert sparse.to_dense().tolist() == (2 * dense).tolist()
    if layout != "coo":
        make = getattr(weft, f"sparse_{layout}_tensor")
        again = make(matrix.indptr, matrix.indices, matrix.data, matrix.shape)
        matrix.data *= 2
        assert again.to_dense().tolist() == (4 * dense).tolist()


def test_matrices_that_scipy_does_not_have():
    _, sparse, _ = system("bsc")
    for x in (
        sparse,
        sparse.to_sparse_coo().unsqueeze(0),
        weft.ones(2, 2),
        weft.eye(2).to_sparse().requires_grad_(),
    ):
        with pytest.raises(TypeError):
            to_scipy(x)


@pytest.mark.parametrize(
    "layout, options",
    [
        *[
            ("sparse_csr", each)
            for each in ({}, {"upper": False}, {"transpose": True}, {"unitriangular": True})
        ],
        *[("sparse_bsr", each) for each in ({}, {"upper": False}, {"transpose": True})],
    ],
)
def test_triangular_solve(layout, options):
    found = []
    for lib in (torch, weft):
        dense = lib.tensor([[2.0, 1, 0, 3], [1, 4, 0, 1], [0, 0, 5, 0], [0, 2, 0, 1]], dtype=lib.float64)
        blocks = {"blocksize": (2, 2)} if layout == "sparse_bsr" else {}
        matrix = dense.to_sparse(layout=getattr(lib, layout), **blocks)
        solution, copy = lib.triangular_solve(
            lib.arange(8.0, dtype=lib.float64).view(4, 2), matrix, **options
        )
        found.append((solution.tolist(), copy.tolist()))
    assert found[0][0] == [pytest.approx(row) for row in found[1][0]] and found[0][1] == found[1][1]


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
def test_linalg_solve_triangular(left, unitriangular):
    dense = weft.tensor([[2.0, 1, 3], [7, 4, 0], [0, 5, 5]], dtype=weft.float64)
    other = weft.arange(9.0, dtype=weft.float64).view(3, 3)
    options = {"upper": True, "left": left, "unitriangular": unitriangular}
    for matrix in (dense.to_sparse(), dense.to_sparse_csc()):
        found = weft.linalg.solve_triangular(matrix, other, **options)
        assert found.allclose(weft.linalg.solve_triangular(dense, other, **options))
    values = dense.to_sparse().values().clone().requires_grad_()
    indices = dense.to_sparse().indices()

    def solved(values, other):
        return weft.linalg.solve_triangular(weft.sparse_coo_tensor(indices, values, (3, 3)), other, **options)

    assert weft.autograd.gradcheck(solved, (values, other.clone().requires_grad_()))


@pytest.mark.parametrize("transpose", [False, True])
def test_triangular_solve_divides_by_zeros_of_the_diagonal(transpose):
    dense, other = weft.tensor([[2.0, 1, 0], [0, 0, 4], [0, 0, 5]]), weft.ones(3, 2)
    expected = weft.triangular_solve(other, dense, transpose=transpose).solution
    solved = weft.triangular_solve(other, dense.to_sparse_csr(), transpose=transpose)
    np.testing.assert_array_equal(solved.solution.numpy(), expected.numpy())
    assert solved.cloned_coefficient.numel() == 0


def test_triangular_solve_writes_both_results():
    triangle, other = weft.tensor([[2.0, 1], [0, 4]]), weft.ones(2, 2)
    out = weft.empty(0), weft.empty(0)
    solved = weft.triangular_solve(other, triangle.to_sparse_csr(), out=out)
    assert solved.solution is out[0]
    np.testing.assert_allclose((triangle @ out[0]).numpy(), other.numpy())
