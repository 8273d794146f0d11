"""Factorizations of which only the largest or smallest part is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.layout import strided
from ...core.public import public
from ...core.tensor import Tensor
from ..creation.random import randn
from .eigen import eigh, linalg_svd
from .equations import solve_triangular
from .factorizations import linalg_cholesky, linalg_qr
from .lapack import check_matrix, check_square
from .matmul import matmul

Product = Callable[[Tensor], Tensor]


def _range_basis(times: Product, adjoint: Product, sketch: Tensor, niter: int) -> Tensor:
    """Orthonormal columns that span most of the range of a matrix, which is given by its products with columns.

    Source: Halko, Martinsson, Tropp 2011, "Finding structure with randomness", algorithm 4.4.
    """
    basis = linalg_qr(times(sketch)).Q
    for _ in range(niter):
        basis = linalg_qr(adjoint(basis)).Q
        basis = linalg_qr(times(basis)).Q
    return basis


def _products(A: Tensor, M: Tensor | None) -> tuple[Product, Product]:
    """The products of A - M, and of its adjoint, with columns. M may be one row, which stands for all.

    The difference of a sparse and a dense matrix is dense, so it is not computed.
    """
    if M is None:
        return (lambda x: matmul(A, x)), (lambda y: matmul(A.mH, y))
    is_row = M.shape[-2] == 1

    def adjoint(y: Tensor) -> Tensor:
        return matmul(A.mH, y) - matmul(M.mH, y.sum(-2, keepdim=True) if is_row else y)

    return (lambda x: matmul(A, x) - matmul(M, x)), adjoint


@public("function")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return U, S, V of about the `q` largest singular values of A (of A - M if given), by random projection.

    Shapes: [..., m, n] -> [..., m, q], [..., q], [..., n, q]. Random numbers come from the default generator.
    """
    check_matrix(A, "svd_lowrank")
    if M is not None and A.layout is strided:
        A, M = A - M, None
    times, adjoint = _products(A, M)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        times, adjoint = adjoint, times
    sketch = randn(min(A.shape[-2:]), 6 if q is None else q, dtype=A.dtype, device=A.device)
    basis = _range_basis(times, adjoint, sketch, 2 if niter is None else niter)
    U, S, Vh = linalg_svd(adjoint(basis).mH, False)
    U, V = matmul(basis, U), Vh.mH
    return (V, S, U) if wide else (U, S, V)


@public("function")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, ...]:
    """Principal components: `svd_lowrank` of A, its columns centered first if `center`. By default q = min(6, m, n).

    A sparse matrix stays sparse: the products with its means are subtracted from its products.
    """
    check_matrix(A, "pca_lowrank")
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    mean = A.sum(-2, keepdim=True).to_dense() / m if center else None
    return svd_lowrank(A, q, niter, mean)


@public("function")
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest (smallest unless `largest`) eigenvalues of A @ x = value * B @ x, and their vectors.

    A is symmetric or Hermitian, B positive-definite. The dense problem is solved exactly, so what steers PyTorch's
    iteration (X but for its size, iK, niter, tol, method, tracker, ortho_*) has no effect.
    Raises: ValueError if A has less than 3 * k rows, as PyTorch.
    """
    check_square(A, "lobpcg")
    k = k if k is not None else 1 if X is None else X.shape[-1]
    rows = A.shape[-1]
    if k < 0:
        raise RuntimeError(f"lobpcg: the number of eigenpairs must not be negative, but k is {k}")
    if rows < 3 * k:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={k})"
        )
    if B is not None:  # with B = L @ L.mH and y = L.mH @ x: inv(L) @ A @ inv(L).mH @ y = value * y
        factor = linalg_cholesky(B)
        half = solve_triangular(factor, A, upper=False)
        A = solve_triangular(factor.mH, half, upper=True, left=False)
    # As in PyTorch, both triangles count, although `eigh` reads one: gradcheck changes single elements.
    values, vectors = eigh((A + A.mH) / 2)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    values, vectors = values[..., :k], vectors[..., :k]
    return values, vectors if B is None else solve_triangular(factor.mH, vectors, upper=True)
