"""Determinants, inverses, linear equations and what is made of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.arguments import integer
from ..core.dtype import LEGACY_NAMES
from ..core.iteration import broadcast_shapes
from ..core.layout import contiguous_format
from ..core.op import FUNCTIONS, public, write_out
from ..core.return_types import return_type
from ..core.tensor import Tensor, wrap_dim
from ..engine.complexes import Complex
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
from ..families.library import tensor_of
from ..families.reduce import Reduce, Types, single_dim
from .copying import clone
from .factorizations import eigh, eigvalsh, linalg_svd, svdvals
from .joining import stack
from .matmul import matmul, mm
from .views import broadcast_tensors

FUNCTIONS["linalg.LinAlgError"] = LinAlgError

# ---- Determinants ----------------------------------------------------------------------------------------------------

Slogdet = return_type("linalg_slogdet", ("sign", "logabsdet"))
OldSlogdet = return_type("slogdet", ("sign", "logabsdet"))


@matrix_op
def _det(a: np.ndarray) -> Tensor:
    return rows(np.linalg.det(a))


@public("function method", "linalg.det", out=True)
def det(A: Tensor) -> Tensor:
    """The determinants: [..., n, n] -> [...].

    >>> import weft as torch
    >>> torch.linalg.det(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor(6.)
    """
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    check_supported(A, "lu_cpu")
    return _det(A)


@matrix_op
def _slogdet(a: np.ndarray) -> tuple[Tensor, Tensor]:
    sign, logarithm = np.linalg.slogdet(a)
    return rows(sign), rows(logarithm)


def _sign_and_logarithm(A: Tensor) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet", low_precision=False)
    return _slogdet(A)


@public("function", name="linalg.slogdet", out=True)
def linalg_slogdet(A: Tensor) -> Any:
    """The sign of the determinant (or its complex direction) and the logarithm of its absolute value."""
    return Slogdet(_sign_and_logarithm(A))


@public("function method", out=True)
def slogdet(input: Tensor) -> Any:
    """The older name of `linalg.slogdet`."""
    return OldSlogdet(_sign_and_logarithm(input))


@public("function method")
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN where that is negative, -inf where it is 0."""
    check_square(input, "linalg.slogdet")
    sign, logarithm = _sign_and_logarithm(input)
    return logarithm + sign.log()


# ---- Inverses --------------------------------------------------------------------------------------------------------

InvEx = return_type("linalg_inv_ex", ("inverse", "info"))


@matrix_op
def _inv(a: np.ndarray) -> tuple[Tensor, Tensor]:
    infos = np.zeros(a.shape[:-2], np.int32)
    try:
        inverse = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        inverse, infos = _invert_each(a)
    return columns(inverse), rows(infos)


def _invert_each(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    inverse, infos = np.empty_like(a), np.zeros(a.shape[:-2], np.int32)
    getrf, getri = routine("getrf", a.dtype), routine("getri", a.dtype)
    for i in each(a.shape[:-2]):
        factors, pivots, infos[i] = getrf(a[i])
        inverse[i] = factors if infos[i] else getri(factors, pivots)[0]
    return inverse, infos


def _checked_inv(A: Tensor) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv", low_precision=False)
    return _inv(A)


def _check_invertible(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[0]}The diagonal element {failed[1]} is zero, the inversion could not be completed because "
            "the input matrix is singular."
        )


@public("function", name="linalg.inv", out=True)
def inv(A: Tensor) -> Tensor:
    """The inverses of square matrices: [..., n, n] -> [..., n, n].

    Raises: LinAlgError naming the first singular matrix.

    >>> import weft as torch
    >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = _checked_inv(A)
    _check_invertible(info, "linalg.inv")
    return inverse


@public("function method", out=True)
def inverse(input: Tensor) -> Tensor:
    """The older name of `linalg.inv`."""
    return inv(input)


@public("function", name="linalg.inv_ex", out=True)
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Like `linalg.inv`, with LAPACK's info (0, or the first zero pivot) instead of an error."""
    inverse, info = _checked_inv(A)
    if check_errors:
        _check_invertible(info, "linalg.inv_ex")
    return InvEx((inverse, info))


# ---- Linear equations ------------------------------------------------------------------------------------------------

SolveEx = return_type("linalg_solve_ex", ("result", "info"))
TriangularSolve = return_type("triangular_solve", ("solution", "cloned_coefficient"))


@matrix_op
def _solve(a: np.ndarray, b: np.ndarray) -> tuple[Tensor, Tensor]:
    infos = np.zeros(a.shape[:-2], np.int32)
    try:
        found = np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        infos = _invert_each(a)[1]
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


@public("function", name="linalg.lu_solve", out=True)
def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """X with A @ X = B from the factors that `linalg.lu_factor(A)` gives.

    `left=False`: X @ A = B; `adjoint`: A.mH in the place of A.
    """
    name = "linalg.lu_solve"
    check_same_dtype(LU, B, name, ("LU", "B"))
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
    check_same_dtype(LD, B, name, ("LD", "B"))
    check_supported(LD, "ldl_solve_kernel_cpu")
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
    rank, values = np.zeros(batch, np.int64), np.zeros((*batch, min(m, n)), real)
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


# ---- Pseudo-inverse and rank -----------------------------------------------------------------------------------------


def _tolerance(A: Tensor, largest: Tensor, atol: Any, rtol: Any) -> Tensor:
    """What counts as zero among singular values: max(atol, rtol * largest)."""
    if rtol is None:
        eps = float(np.finfo(A.spec.dtype.to_real().numpy).eps) * max(A.shape[-2:])
        rtol = eps if atol is None else _where_positive(atol, eps)
    if not isinstance(rtol, Tensor):
        return _at_least(rtol * largest, atol)
    return _at_least(rtol.to(largest.dtype).unsqueeze(-1) * largest, atol)


def _where_positive(atol: Any, eps: float) -> Any:
    """The default rtol: 0 where an absolute tolerance is given."""
    if not isinstance(atol, Tensor):
        return 0.0 if atol > 0 else eps
    return (atol <= 0).to(atol.dtype) * eps


def _at_least(tolerance: Tensor, atol: Any) -> Tensor:
    if atol is None:
        return tolerance
    if not isinstance(atol, Tensor):
        return tolerance.clamp(min=float(atol))
    return tolerance.maximum(atol.to(tolerance.dtype).unsqueeze(-1))


@public("function", name="linalg.pinv", out=True)
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The Moore-Penrose inverses: [..., m, n] -> [..., n, m].

    Singular values up to max(atol, rtol * the largest) count as zero; `rcond` is the older name of `rtol`.
    """
    check_tensor(A, "linalg.pinv")
    dtype = A.spec.dtype
    if A.dim() < 2 or dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise RuntimeError(
            f"linalg.pinv({LEGACY_NAMES[dtype]}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    rtol = rcond if rtol is None else rtol
    if A.numel() == 0:
        return A.new_zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]))
    if hermitian:
        values, vectors = eigh(A)
        size = values.abs()
        left, right = vectors, vectors
    else:
        vectors, values, others = linalg_svd(A, False)
        size, left, right = values, others.mH, vectors
    largest = size.amax(-1, keepdim=True)
    inverted = (size > _tolerance(A, largest, atol, rtol)).to(values.dtype) / values
    inverted = inverted.masked_fill(values == 0, 0)
    return matmul(left * inverted.unsqueeze(-2), right.mH)


@public("function method")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The older form of `linalg.pinv`."""
    return pinv(input, rcond)


@public("function", name="linalg.matrix_rank", out=True)
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above max(atol, rtol * the largest); `tol` is the older name of `atol`."""
    check_tensor(input, "linalg.matrix_rank", "input")
    if input.spec.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise RuntimeError("This function doesn't handle types other than float and double")
    check_matrix(input, "torch.linalg.matrix_rank", "input")
    for value, what in ((atol, "atol"), (rtol, "rtol"), (tol, "tol")):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(f"torch.linalg.matrix_rank: {what} tensor of complex type is not supported.")
    if tol is not None:
        atol, rtol = tol, 0.0
    if input.numel() == 0:
        return tensor_of(np.zeros(input.shape[:-2], np.int64))
    size = eigvalsh(input).abs() if hermitian else svdvals(input)
    return (size > _tolerance(input, size.amax(-1, keepdim=True), atol, rtol)).sum(-1)


# ---- Powers, products, exponentials -----------------------------------------------------------------------------------


@public("function method", "linalg.matrix_power", out=True)
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The matrices multiplied by themselves n times; their inverses for negative n."""
    check_square(input, "linalg.matrix_power", "A")
    n = integer(n, "linalg_matrix_power", "n")
    if n == 0:
        identity = np.eye(input.shape[-1], dtype=input.spec.dtype.numpy)
        return tensor_of(identity).expand(input.shape).contiguous()
    if n == 1:
        return clone(input, memory_format=contiguous_format)
    if n < 0:
        input, n = inv(input), -n
    power, result = input, None
    while True:  # square for every binary digit, multiply for those that are 1
        if n & 1:
            result = power if result is None else matmul(result, power)
        n >>= 1
        if not n:
            return result
        power = matmul(power, power)


@functools.cache
def _best_split(sizes: tuple[int, ...]) -> tuple[int, int]:
    """(cost, where to split) of the cheapest product of matrices [s0, s1], [s1, s2], ...: dynamic programming."""
    if len(sizes) == 2:
        return 0, 0
    costs = (
        (_best_split(sizes[: k + 1])[0] + _best_split(sizes[k:])[0] + sizes[0] * sizes[k] * sizes[-1], k)
        for k in range(1, len(sizes) - 1)
    )
    return min(costs)


def _chain(matrices: Sequence[Tensor]) -> Tensor:
    if len(matrices) == 1:
        return matrices[0]
    sizes = (matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices))
    _, split = _best_split(sizes)
    return mm(_chain(matrices[:split]), _chain(matrices[split:]))


@public("function", name="linalg.multi_dot")
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices in the order with the fewest multiplications.

    The first and the last may be vectors: a row and a column.
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, tensor in enumerate(tensors):
        wanted = (1, 2) if i in (0, len(tensors) - 1) else (2,)
        if tensor.dim() not in wanted:
            kind = "1D or 2D" if len(wanted) == 2 else "2D"
            where = {0: "the first tensor", len(tensors) - 1: "the last tensor"}.get(i, f"tensor {i}")
            raise RuntimeError(f"multi_dot(): {where} must be {kind} but got {tensor.dim()}D")
        if tensor.spec.dtype is not tensors[0].spec.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype} and tensor {i} {tensor.dtype}"
            )
    first, last = tensors[0].dim() == 1, tensors[-1].dim() == 1
    matrices = [t.unsqueeze(0) if i == 0 and first else t for i, t in enumerate(tensors)]
    matrices[-1] = matrices[-1].unsqueeze(-1) if last else matrices[-1]
    for i, (a, b) in enumerate(zip(matrices, matrices[1:], strict=False)):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(tensors[i].shape)} and "
                f"{list(tensors[i + 1].shape)} cannot be multiplied"
            )
    shape = (() if first else matrices[0].shape[:1]) + (() if last else matrices[-1].shape[1:])
    result = _chain(matrices).reshape(tuple(shape))
    return result if out is None else write_out(out, result, "multi_dot")


# Coefficients of the diagonal Pade approximant of degree 13 and the norm up to which it is exact in float64.
# Source: Higham 2005, "The scaling and squaring method for the matrix exponential revisited".
_PADE = [math.factorial(26 - k) // (math.factorial(k) * math.factorial(13 - k)) for k in range(14)]
_PADE_LIMIT = 5.371920351148152


@matrix_op
def _matrix_exp(a: np.ndarray) -> Tensor:
    if not a.size:
        return rows(a)
    wide = a.astype(np.result_type(a.dtype, np.float64))
    sizes = np.abs(wide).sum(-2).max(-1)
    halvings = np.where(sizes > _PADE_LIMIT, np.ceil(np.log2(np.maximum(sizes, 1e-300) / _PADE_LIMIT)), 0)
    halvings = np.where(np.isfinite(sizes), halvings, 0).astype(int)
    wide = wide * (0.5**halvings)[..., None, None]
    result = _pade(wide)
    for step in range(int(halvings.max())):
        again = halvings > step  # of every matrix as often as it was halved
        result[again] = result[again] @ result[again]
    return rows(result.astype(a.dtype))


def _pade(a: np.ndarray) -> np.ndarray:
    b = [coefficient / _PADE[13] for coefficient in _PADE]
    identity = np.eye(a.shape[-1])
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
    odd = a @ odd
    try:
        return np.linalg.solve(even - odd, even + odd)
    except np.linalg.LinAlgError:  # only for NaN and inf
        return np.full_like(a, np.nan)


@public("function method", "linalg.matrix_exp")
def matrix_exp(input: Tensor) -> Tensor:
    """The matrix exponentials I + A + A @ A / 2 + ...: [..., n, n] -> [..., n, n]."""
    check_square(input, "linalg.matrix_exp")
    check_floating(input, "linalg.matrix_exp")
    dtype = input.spec.dtype
    narrow = dtype.name in ("float16", "bfloat16")
    return _matrix_exp(input.float()).to(dtype) if narrow else _matrix_exp(input)


# ---- Tensors as matrices -----------------------------------------------------------------------------------------------


@public("function", name="linalg.tensorinv", out=True)
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `tensordot(A, ., ind)`: the first `ind` dims change places with the others."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    check_tensor(A, "linalg.tensorinv")
    first, last = A.shape[:ind], A.shape[ind:]
    rows_, columns_ = math.prod(first), math.prod(last)
    if rows_ != columns_:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{columns_} != {rows_}"
        )
    return inv(A.reshape(rows_, columns_)).reshape((*last, *first))


@public("function", name="linalg.tensorsolve", out=True)
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with `tensordot(A, X, X.ndim) == B`; `dims` of A are moved to its end first."""
    check_tensor(A, "linalg.tensorsolve")
    check_tensor(B, "linalg.tensorsolve", "B", 2)
    if dims is not None:
        moved = [wrap_dim(dim, A.dim()) for dim in dims]
        A = A.permute([dim for dim in range(A.dim()) if dim not in moved] + moved)
    shape = A.shape[B.dim() :]
    if B.numel() != math.prod(shape):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(shape)} != {B.numel()}"
        )
    return linalg_solve(A.reshape(B.numel(), B.numel()), B.flatten()).reshape(shape)


@public("function", name="linalg.vander")
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 (N is by default n) of each element: [..., n] -> [..., n, N]."""
    check_tensor(x, "linalg.vander", "x")
    if N is not None and N <= 1:
        raise RuntimeError(f"N must be greater than 1, got {N}")
    x = x.reshape(1) if x.dim() == 0 else x
    count = x.shape[-1] if N is None else N
    powers = [x.new_ones(x.shape)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    return stack(powers[:count], -1)


@public("function")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element of a vector, descending unless `increasing`: [n] -> [n, N]."""
    check_tensor(x, "vander", "x")
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    count = x.numel() if N is None else N
    if count <= 1:
        return x.new_ones((x.numel(), count))
    powers = linalg_vander(x, N=count)
    return powers if increasing else powers.flip(1)


# ---- Dot products along a dim --------------------------------------------------------------------------------------------


def _conj_product(a: Any, b: Any) -> tuple:
    if isinstance(a, Complex):
        return (Complex(a.real * b.real + a.imag * b.imag, a.real * b.imag - a.imag * b.real),)
    return (a * b,)


VECDOT = Reduce(
    "linalg_vecdot",
    lambda dtype, wanted: Types(dtype, (dtype,)),
    lambda compute: ((0, compute),),
    _conj_product,
    lambda a, b: (a[0] + b[0],),
    cascade=True,
)


@public("function", name="linalg.vecdot", out=True)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along `dim`, those of `x` conjugated; the other dims broadcast.

    >>> import weft as torch
    >>> torch.linalg.vecdot(torch.ones(2, 3), torch.ones(3))
    tensor([3., 3.])
    """
    check_tensor(x, "linalg.vecdot", "x")
    check_tensor(y, "linalg.vecdot", "y", 2)
    check_floating(x, "linalg.vecdot")
    check_same_dtype(x, y, "linalg.vecdot", ("x", "y"))
    x, y = broadcast_tensors(x, y)
    return VECDOT(x, y, dims=single_dim(dim, x.dim(), "linalg.vecdot"))
