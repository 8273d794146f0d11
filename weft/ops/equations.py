"""Systems of linear equations, exact and by least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtype import LEGACY_NAMES
from ..core.iteration import broadcast_shapes
from ..core.op import public
from ..core.return_types import return_type
from ..core.tensor import Tensor
from ..families.lapack import (
    LinAlgError,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    check_supported,
    check_tensor,
    columns,
    each,
    first_failure,
    matrix_op,
    routine,
    rows,
    work_size,
)
from ..families.library import array, tensor_of

# ---- Linear equations ------------------------------------------------------------------------------------------------

SolveEx = return_type("linalg_solve_ex", ("result", "info"))
TriangularSolve = return_type("triangular_solve", ("solution", "cloned_coefficient"))


def _singular_pivots(a: np.ndarray) -> np.ndarray:
    """LAPACK's info of each matrix: 0, or the first pivot that is zero."""
    infos, factor = np.zeros(a.shape[:-2], np.int32), routine("getrf", a.dtype)
    for i in each(a.shape[:-2]):
        infos[i] = factor(a[i])[2]
    return infos


@matrix_op
def _solve(a: np.ndarray, b: np.ndarray) -> tuple[Tensor, Tensor]:
    infos = np.zeros(a.shape[:-2], np.int32)
    try:
        found = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        infos = _singular_pivots(a)
        found = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    return columns(found), rows(infos)


def _is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is one vector for each matrix of A."""
    return B.dim() == 1 or A.dim() - 1 == B.dim() and B.shape == A.shape[:-1]


def _checked_solve(A: Tensor, B: Tensor, left: bool, name: str) -> tuple[Tensor, Tensor]:
    check_tensor(A, name)
    check_tensor(B, name, "B", 2)
    check_floating(A, "linalg.solve", low_precision=False)
    check_same_dtype(A, B, "linalg.solve")
    check_square(A, "linalg.solve")
    if _is_vector(A, B):
        if not left:
            raise RuntimeError(
                "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
                "linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        _check_equation(A, B.unsqueeze(-1), True, "linalg.solve")
        result, info = _solve(A, B.unsqueeze(-1))
        return _vector_columns(result.squeeze(-1)), info
    check_matrix(B, "linalg.solve", "B")
    _check_equation(A, B, left, "linalg.solve")
    if left:
        return _solve(A, B)
    result, info = _solve(A.mT, B.mT)
    return result.mT, info


def _vector_columns(result: Tensor) -> Tensor:
    """PyTorch stores a stack of solution vectors as if it were a matrix, column by column."""
    return result if result.dim() < 2 else result.mT.contiguous().mT


def _check_equation(A: Tensor, B: Tensor, left: bool, name: str) -> None:
    broadcast_shapes(name, A.shape[:-2], B.shape[:-2])
    n = B.shape[-2 if left else -1]
    if A.shape[-1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({A.shape[-2]}x{A.shape[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )


def _check_solvable(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(f"{name}: {failed[0]}The solver failed because the input matrix is singular.")


@public("function", name="linalg.solve", out=True)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with A @ X = B, or X @ A = B if not `left`. The leading dims broadcast.

    Shapes: A [..., n, n]; B [..., n, k], or a vector [..., n] for each matrix.
    Raises: LinAlgError naming the first singular matrix.
    """
    result, info = _checked_solve(A, B, left, "linalg.solve")
    _check_solvable(info, "torch.linalg.solve")
    return result


@public("function", name="linalg.solve_ex", out=True)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Like `linalg.solve`, with LAPACK's info (0, or the first zero pivot) instead of an error."""
    result, info = _checked_solve(A, B, left, "linalg.solve_ex")
    if check_errors:
        _check_solvable(info, "torch.linalg.solve_ex")
    return SolveEx((result, info))


@matrix_op
def _solve_triangular(
    a: np.ndarray, b: np.ndarray, *, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (a, b))
    found = np.empty_like(b)
    if b.size:
        solve = routine("trsm", b.dtype)  # unlike LAPACK's trtrs it gives inf for a zero on the diagonal
        for i in each(batch):
            found[i] = solve(1.0, a[i], b[i], side=not left, lower=not upper, diag=unitriangular)
    return columns(found)


@public("function", name="linalg.solve_triangular", out=True)
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with A @ X = B (X @ A = B if not `left`) for triangular A, of which only that triangle is read.

    A zero on the diagonal gives inf or NaN, not an error. `unitriangular`: the diagonal counts as ones.
    """
    name = "linalg.solve_triangular"
    check_same_dtype(A, B, name)
    check_square(A, name)
    check_matrix(B, name, "B")
    _check_equation(A, B, left, name)
    check_supported(A, "triangular_solve_cpu")
    return _solve_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)


@public("function method", out=True)
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """The older form of `linalg.solve_triangular`: also returns a copy of A."""
    for tensor, what in ((b, "b"), (A, "A")):
        if tensor.dim() < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {what} to have at least 2 dimensions, but it has {tensor.dim()} "
                "dimensions instead"
            )
    if A.spec.dtype is not b.spec.dtype:
        raise RuntimeError(
            f"triangular_solve: Expected b and A to have the same dtype, but found {b.dtype} and {A.dtype}"
        )
    check_square(A, "triangular_solve")
    _check_equation(A, b, True, "triangular_solve")
    triangle = A.mT if transpose else A
    solution = solve_triangular(triangle, b, upper=upper != transpose, unitriangular=unitriangular)
    batch = solution.shape[:-2]
    return TriangularSolve((solution, A.expand((*batch, *A.shape[-2:])).mT.contiguous().mT))


@public("function method", out=True)
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with A @ X = input, where `input2` is the Cholesky factor of A."""
    for tensor, what in ((input, "b"), (input2, "u")):
        if tensor.dim() < 2:
            raise RuntimeError(
                f"{what} should have at least 2 dimensions, but has {tensor.dim()} dimensions instead"
            )
    check_square(input2, "cholesky_solve")
    _check_equation(input2, input, True, "cholesky_solve")
    first, second = (input2.mH, input2) if upper else (input2, input2.mH)
    return solve_triangular(second, solve_triangular(first, input, upper=False), upper=True)


@public("function method", out=True)
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose Cholesky factor is `input`."""
    check_square(input, "cholesky_inverse")
    check_supported(input, "cholesky_inverse_out_cpu")
    identity = tensor_of(np.eye(input.shape[-1], dtype=input.spec.dtype.numpy))
    return cholesky_solve(identity.expand(input.shape), input, upper)


@matrix_op
def _lu_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, adjoint: bool) -> Tensor:
    batch = np.broadcast_shapes(factors.shape[:-2], pivots.shape[:-1], b.shape[:-2])
    factors, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (factors, b))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1])) - 1
    found = np.empty_like(b)
    if b.size:
        solve = routine("getrs", b.dtype)
        for i in each(batch):
            found[i] = solve(factors[i], pivots[i], b[i], trans=2 if adjoint else 0)[0]
    return columns(found)


def _check_pivots(pivots: Tensor, least: int, most: int, name: str, factors: str, source: str) -> None:
    """LAPACK swaps rows as the pivots say, wherever in memory that is."""
    if not pivots.device.backend.has_memory:
        return
    found = array(pivots)
    if found.size and not least <= found.min() <= found.max() <= most:
        raise RuntimeError(
            f"Pivots given to {name} must all be from {least} to {most}, the size of {factors}. Did you properly pass "
            f"the result of {source}?"
        )


@public("function", name="linalg.lu_solve", out=True)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A @ X = B from the factors that `linalg.lu_factor(A)` gives.

    `left=False`: X @ A = B; `adjoint`: A.mH in the place of A.
    """
    name = "linalg.lu_solve"
    check_same_dtype(LU, B, name, "LU", "B")
    if pivots.spec.dtype.name != "int32":
        raise RuntimeError(f"{name}: pivots should be a Tensor of scalar type torch.int32")
    check_square(LU, "torch.linalg.lu_solve", "LU")
    check_matrix(B, name, "B")
    _check_equation(LU, B, left, name)
    if LU.shape[-1] != pivots.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of the matrix"
        )
    if LU.shape[:-2] != pivots.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    check_supported(LU, "lu_solve_cpu")
    _check_pivots(pivots, 1, LU.shape[-2], "lu_solve", "LU", "lu_factor")
    if left:
        return _lu_solve(LU, pivots, B, adjoint=adjoint)
    # X @ A = B is A.mH @ X.mH = B.mH
    return _lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH.resolve_conj()


@public("function method", out=True)
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The older form of `linalg.lu_solve`."""
    return linalg_lu_solve(LU_data, LU_pivots, input)


@matrix_op
def _ldl_solve(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, hermitian: bool) -> Tensor:
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors, b = (np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in (factors, b))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    found = np.empty_like(b)
    if b.size:
        solve = routine("hetrs" if hermitian and b.dtype.kind == "c" else "sytrs", b.dtype)
        for i in each(batch):
            found[i] = solve(factors[i], pivots[i], b[i], lower=True)[0]
    return columns(found)


@public("function", name="linalg.ldl_solve", out=True)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with A @ X = B from the factors that `linalg.ldl_factor(A)` gives."""
    name = "torch.linalg.ldl_solve"
    check_square(LD, name, "LD")
    check_floating(LD, name)
    _check_equation(LD, B, True, name)
    if pivots.dim() < 1 or pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if pivots.spec.dtype.category != 1:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {LEGACY_NAMES[pivots.spec.dtype]}")
    check_same_dtype(LD, B, name, "LD", "B")
    check_supported(LD, "ldl_solve_kernel_cpu")
    _check_pivots(pivots, -LD.shape[-2], LD.shape[-2], "ldl_solve", "LD", "ldl_factor")
    return _ldl_solve(LD, pivots, B, hermitian=hermitian)


# ---- Least squares ---------------------------------------------------------------------------------------------------

Lstsq = return_type("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _least_squares(a: np.ndarray, b: np.ndarray, rcond: float, driver: str) -> tuple[np.ndarray, int, Any]:
    """One solution (with what LAPACK leaves below it), the rank and the singular values."""
    m, n = a.shape
    padded = np.zeros((max(m, n), b.shape[1]), b.dtype)
    padded[:m] = b
    if not a.size or not b.size:
        return padded * 0, 0, np.zeros(0)
    size = (m, n, b.shape[1])
    if driver == "gels":
        work = work_size(routine("gels_lwork", a.dtype)(*size))
        _, found, info = routine("gels", a.dtype)(a, padded, lwork=work)
        rank, values = min(m, n), np.zeros(0)
    elif driver == "gelsy":
        work = work_size(routine("gelsy_lwork", a.dtype)(*size, rcond))
        _, found, _, rank, info = routine("gelsy", a.dtype)(a, padded, np.zeros(n, np.int32), rcond, work)
        values = np.zeros(0)
    elif driver == "gelss":
        work = work_size(routine("gelss_lwork", a.dtype)(*size))
        _, found, values, rank, _, info = routine("gelss", a.dtype)(a, padded, cond=rcond, lwork=work)
    else:
        sizes = [work_size((answer,)) for answer in routine("gelsd_lwork", a.dtype)(*size)[:-1]]
        found, values, rank, info = routine("gelsd", a.dtype)(a, padded, *sizes, rcond)
    if info:
        raise LinAlgError(
            "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not "
            f"have full rank (error code: {info})."
        )
    return found, rank, values


@matrix_op
def _lstsq(
    a: np.ndarray, b: np.ndarray, *, rcond: float, driver: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    (m, n), batch = a.shape[-2:], np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    real = np.empty(0, a.dtype).real.dtype
    found = np.zeros((*batch, max(m, n), b.shape[-1]), b.dtype)
    rank: Any = np.zeros(batch, np.int64)
    values = np.zeros((*batch, min(m, n)), real)
    for i in each(batch):
        found[i], rank[i], singular = _least_squares(a[i], b[i], rcond, driver)
        if driver in ("gelss", "gelsd"):
            values[i] = singular
    residuals = np.zeros(0, real)
    full = driver == "gels" or bool((rank == n).all())
    if m > n and driver != "gelsy" and full:
        residuals = (np.abs(found[..., n:, :]) ** 2).sum(-2)
    if driver == "gels":
        rank = np.zeros(0, np.int64)
    if driver not in ("gelss", "gelsd"):
        values = np.zeros(0, real)
    return columns(found), rows(residuals), rows(rank), rows(values)


@public("function", name="linalg.lstsq", out=True)
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """X that minimises |A @ X - B|, for each column of B.

    Shapes: A [..., m, n], B [..., m, k] or [..., m] -> solution [..., n, k] or [..., n]; residuals [..., k] (if
    m > n and A has full rank), rank and singular values: each empty if the driver does not give it.
    Drivers: "gelsy" (default), "gels" (full rank only), "gelsd", "gelss": LAPACK's.
    """
    name = "torch.linalg.lstsq"
    check_tensor(A, "linalg.lstsq", "input")
    check_tensor(B, "linalg.lstsq", "b", 2)
    if A.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.spec.dtype is not B.spec.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype} and other's dtype {B.dtype}"
        )
    vector = A.dim() - B.dim() == 1 and A.shape[:-1] == B.shape
    right = B.unsqueeze(-1) if vector else B
    if A.shape[-2] != right.shape[-2]:
        where = (
            "input.size(-2) should match other.size(-1)"
            if vector
            else "input.size(-2) should match other.size(-2)"
        )
        raise RuntimeError(f"{name}: {where}\nshapes {list(A.shape)} and {list(B.shape)}")
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    check_supported(A, "linalg_lstsq_cpu")
    broadcast_shapes("linalg.lstsq", A.shape[:-2], right.shape[:-2])
    m, n = A.shape[-2:]
    if rcond is None:
        rcond = float(np.finfo(A.spec.dtype.to_real().numpy).eps) * max(m, n)
    solution, residuals, rank, values = _lstsq(A, right, rcond=rcond, driver=driver)
    solution = solution.narrow(-2, 0, n)
    return Lstsq((solution.squeeze(-1) if vector else solution, residuals, rank, values))
