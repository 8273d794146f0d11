"""Solves sparse systems of linear equations, by SciPy's SuperLU: `torch.sparse.spsolve`, triangular systems."""

from __future__ import annotations

import math
from typing import Any

from ...core.layout import sparse_csc
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...engine.blas import scipy
from ...families.array_op import array, inside, tensor_of
from ...families.custom_vjp import custom_vjp
from ...ops.linalg.equations import TriangularSolve
from ..parts import is_plain, values_of
from .compressed import compressed_parts
from .compression import majors_of
from .conversion import as_compressed, as_coo, coalesce, to_dense
from .coo import coo, indices_of
from .invariants import check_readable
from .rules import SPARSE


def _of_solution(ct, out, values, other, outer, inner, is_adjoint, *, wanted):
    """With y the solution for the cotangent and the other side of the matrix, the cotangent of A is -y x^H where A has entries."""
    found = _solved(values, ct, outer, inner, not is_adjoint)
    of_matrix = None
    if wanted[0]:
        columns, rows = majors_of(outer, len(inner)), inner
        left, right = (out, found) if is_adjoint else (found, out)
        left, right = left.index_select(0, rows), right.index_select(0, columns)
        of_matrix = -(left * right.conj())
        of_matrix = of_matrix.sum(1) if of_matrix.dim() == 2 else of_matrix
    return of_matrix, found if wanted[1] else None, None, None


@custom_vjp(joint=_of_solution, inputs=4)
def _solved(values: Tensor, other: Tensor, outer: Tensor, inner: Tensor, is_adjoint: bool) -> Tensor:
    """Return the solution of A x = other, or of A^H x = other, for A in CSC."""
    values, other = (each.resolve_conj().resolve_neg().contiguous() for each in (values, other))
    size = len(outer) - 1
    if not size:
        return other.clone()
    with inside("torch.sparse.spsolve", [values, other]):
        matrix = scipy("sparse").csc_array((array(values), array(inner), array(outer)), shape=(size, size))
        factors = scipy("sparse.linalg").splu(matrix)
        return tensor_of(factors.solve(array(other), "H" if is_adjoint else "N"))


@SPARSE.rule("sparse.spsolve")
def spsolve(input: Tensor, other: Tensor, *, left: bool = True) -> Tensor:
    """Compute x with `input @ x = other`, or with `x @ input = other` if not `left`. input: a square matrix.

    Raises: RuntimeError if the matrix has no inverse.
    """
    if input.dim() != 2 or input.shape[0] != input.shape[1]:
        raise RuntimeError(f"spsolve: expected a square matrix, got a tensor of shape {list(input.shape)}")
    if not is_plain(other) or other.dim() not in (1, 2) or other.shape[0 if left else -1] != len(input):
        raise RuntimeError(
            f"spsolve: the right side must be dense and fit a matrix of size {len(input)}, got shape {list(other.shape)}"
        )
    if values_of(input).dtype is not other.dtype or not (other.is_floating_point() or other.is_complex()):
        raise RuntimeError(
            f"spsolve: expected both operands in one floating dtype, got {input.dtype} and {other.dtype}"
        )
    matrix = input if left else input.t()
    outer, inner, values = compressed_parts(as_compressed(matrix, sparse_csc))
    # SciPy does not check them.
    check_readable(outer, inner, values, input.shape, by_rows=False, is_blocked=False)
    turned = other if left or other.dim() == 1 else other.t()
    result = _solved(values, turned, outer, inner, False)
    return result if left or other.dim() == 1 else result.t()


# ---- Triangular systems --------------------------------------------------------------------------------------------------


@SPARSE.rule("linalg.solve_triangular")
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with `A @ X = B` (`X @ A = B` if not `left`) for a triangular matrix A, of which only that triangle is read.

    Raises: RuntimeError if a number on the diagonal is zero.
    """
    B = B if is_plain(B) else to_dense(B)
    if is_plain(A):
        return FUNCTIONS["linalg.solve_triangular"](A, B, upper=upper, left=left, unitriangular=unitriangular)
    return spsolve(_triangle(A, upper, unitriangular), B, left=left)


@SPARSE.rule("triangular_solve")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Return the solution, and, for a sparse matrix A, an empty tensor in place of a copy of A, as in PyTorch."""
    b = b if is_plain(b) else to_dense(b)
    if is_plain(A):
        return FUNCTIONS["triangular_solve"](b, A, upper, transpose, unitriangular)
    triangle = _triangle(A, upper, unitriangular)
    if not triangle._nnz():
        solution = b.new_full(b.shape, math.nan)
    elif _has_zero_on_diagonal(triangle):
        # SuperLU raises; the dense function divides by zero, as PyTorch does.
        solution = FUNCTIONS["triangular_solve"](b, to_dense(triangle), upper, transpose)[0]
    else:
        solution = spsolve(triangle.t() if transpose else triangle, b)
    return TriangularSolve((solution, b.new_empty(0)))


def _has_zero_on_diagonal(matrix: Tensor) -> bool:
    rows, columns = indices_of(matrix).unbind(0)
    return int(((rows == columns) & (values_of(matrix) != 0)).sum()) < len(matrix)


def _triangle(A: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """Return one triangle of a matrix in COO, with ones on the diagonal if `unitriangular`."""
    if A.dim() != 2 or A.shape[0] != A.shape[1]:
        raise RuntimeError(
            f"triangular_solve: expected a square matrix, got a tensor of shape {list(A.shape)}"
        )
    A = coalesce(as_coo(A))
    indices, values = indices_of(A), values_of(A)
    above = indices[1] - indices[0] if upper else indices[0] - indices[1]
    kept = (above >= int(unitriangular)).nonzero().view(-1)
    indices, values = indices.index_select(1, kept), values.index_select(0, kept)
    if unitriangular:
        diagonal = FUNCTIONS["arange"](len(A), device=indices.device).expand(2, len(A))
        indices = FUNCTIONS["cat"]([indices, diagonal], 1)
        values = FUNCTIONS["cat"]([values, values.new_ones(len(A))])
    return coo(indices, values, A.shape, False)
