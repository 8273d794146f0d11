"""Factorizations of matrices: Cholesky, LU, LDL, QR, eigenvalues, singular values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import LEGACY_NAMES
from ..core.op import public
from ..core.return_types import return_type
from ..core.tensor import Tensor
from ..families.lapack import (
    LinAlgError,
    check_floating,
    check_matrix,
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
from .creation import empty as new_empty

# ---- Cholesky --------------------------------------------------------------------------------------------------------

CholeskyEx = return_type("linalg_cholesky_ex", ("L", "info"))


@matrix_op
def _cholesky(a: np.ndarray, *, upper: bool) -> tuple[Tensor, Tensor]:
    infos = np.zeros(a.shape[:-2], np.int32)
    try:
        factor = np.linalg.cholesky(a, upper=upper)
    except np.linalg.LinAlgError:
        factor = np.empty_like(a)
        potrf = routine("potrf", a.dtype)
        for i in each(a.shape[:-2]):
            factor[i], infos[i] = potrf(a[i], lower=not upper, clean=True)
    unknown = np.isnan(factor.diagonal(0, -2, -1))  # OpenBLAS does not stop at NaN
    if unknown.any():
        infos = np.where((infos == 0) & unknown.any(-1), unknown.argmax(-1) + 1, infos).astype(np.int32)
    return columns(factor), rows(infos)


def _checked_cholesky(A: Tensor, upper: bool, name: str) -> tuple[Tensor, Tensor]:
    check_square(A, name)
    check_floating(A, name)
    check_supported(A, "cholesky_cpu")
    return _cholesky(A, upper=upper)


def _check_positive_definite(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[0]}The factorization could not be completed because the input is not positive-definite "
            f"(the leading minor of order {failed[1]} is not positive-definite)."
        )


@public("function", name="linalg.cholesky", out=True)
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L @ L.mH of positive-definite matrices, or its adjoint if `upper`.

    Shapes: [..., n, n] -> [..., n, n]. Only one triangle of the input is read.
    Raises: LinAlgError naming the first matrix that is not positive-definite.
    """
    factor, info = _checked_cholesky(input, upper, "linalg.cholesky")
    _check_positive_definite(info, "linalg.cholesky")
    return factor


@public("function", name="linalg.cholesky_ex", out=True)
def linalg_cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Like `linalg.cholesky`, with LAPACK's info (0, or the order of the minor that fails) instead of an error."""
    factor, info = _checked_cholesky(input, upper, "linalg.cholesky")
    if check_errors:
        _check_positive_definite(info, "linalg.cholesky_ex")
    return CholeskyEx((factor, info))


@public("function method", out=True)
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The older name of `linalg.cholesky`."""
    factor, info = _checked_cholesky(input, upper, "cholesky")
    _check_positive_definite(info, "cholesky")
    return factor


# ---- LU --------------------------------------------------------------------------------------------------------------

LU = return_type("linalg_lu", ("P", "L", "U"))
LuFactor = return_type("linalg_lu_factor", ("LU", "pivots"))
LuFactorEx = return_type("linalg_lu_factor_ex", ("LU", "pivots", "info"))
OldLU = return_type("_lu_with_info", ("LU", "pivots", "info"))
LuUnpack = return_type("lu_unpack", ("P", "L", "U"))


@matrix_op
def _lu_factor(a: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    batch, size = a.shape[:-2], min(a.shape[-2:])
    factors, pivots, infos = np.empty_like(a), np.empty((*batch, size), np.int32), np.zeros(batch, np.int32)
    getrf = routine("getrf", a.dtype)
    if a.size:
        for i in each(batch):
            factors[i], pivots[i], infos[i] = getrf(a[i])
    pivots += 1  # LAPACK counts from 1, SciPy from 0
    return columns(factors), rows(pivots), rows(infos)


def _checked_lu_factor(A: Tensor, pivot: bool, name: str) -> tuple[Tensor, Tensor, Tensor]:
    check_tensor(A, "linalg.lu_factor")
    if A.dim() < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    check_supported(A, "lu_cpu")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return _lu_factor(A)


def _check_nonzero_diagonal(info: Tensor) -> None:
    failed = first_failure(info)
    if failed:
        raise RuntimeError(
            f"torch.linalg.lu_factor: {failed[0]}U[{failed[1]},{failed[1]}] is zero and using it on lu_solve would "
            "result in a division by zero. If you still want to perform the factorization, consider calling "
            "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )


@public("function", name="linalg.lu_factor", out=True)
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """L (below the diagonal, which is 1) and U of each matrix in one, and the row each row was swapped with, from 1.

    Raises: RuntimeError if a diagonal element of U is 0.
    """
    factors, pivots, info = _checked_lu_factor(A, pivot, "torch.lu_factor")
    _check_nonzero_diagonal(info)
    return LuFactor((factors, pivots))


@public("function", name="linalg.lu_factor_ex", out=True)
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Like `linalg.lu_factor`, with LAPACK's info (0, or the first zero on the diagonal of U) instead of an error."""
    factors, pivots, info = _checked_lu_factor(A, pivot, "torch.lu_factor")
    if check_errors:
        _check_nonzero_diagonal(info)
    return LuFactorEx((factors, pivots, info))


@public("method", name="lu")
def lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The older form of `linalg.lu_factor_ex`: (LU, pivots), and infos if asked for."""
    factors, pivots, info = _checked_lu_factor(self, pivot, "torch.lu_factor")
    if get_infos:
        return factors, pivots, info
    _check_nonzero_diagonal(info)
    return factors, pivots


@public("function", out=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The older form of `linalg.lu_factor_ex`: (LU, pivots), and infos if asked for."""
    found = lu_method(A, pivot, get_infos)
    return OldLU(found) if get_infos else found


@matrix_op
def _permutations(pivots: np.ndarray, *, size: int, dtype: Any) -> Tensor:
    """The matrices that undo the row swaps of a factorization."""
    if pivots.size and not 1 <= pivots.min() <= pivots.max() <= size:
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
            f"lu_factor?\nLU.size(-2) is {size}, the pivots lie between {pivots.min()} and {pivots.max()}"
        )
    batch = pivots.shape[:-1]
    order = np.broadcast_to(np.arange(size), (*batch, size)).copy()
    for k in range(pivots.shape[-1]):
        swapped = pivots[..., k : k + 1].astype(np.int64) - 1
        held = np.take_along_axis(order, swapped, -1)
        np.put_along_axis(order, swapped, order[..., k : k + 1], -1)
        order[..., k : k + 1] = held
    found = np.zeros((*batch, size, size), dtype)
    np.put_along_axis(found, order[..., None, :], 1, -2)
    return rows(found)


@public("function", out=True)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U with A = P @ L @ U from what `linalg.lu_factor` gives; parts not asked for are empty."""
    check_tensor(LU_data, "lu_unpack", "LU_data")
    check_tensor(LU_pivots, "lu_unpack", "LU_pivots", 2)
    if LU_pivots.spec.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    if not unpack_data and not unpack_pivots:
        raise RuntimeError("torch.lu_unpack: at least one of unpack_data or unpack_pivots must be true")
    dtype = LU_data.spec.dtype
    nothing = new_empty(0, dtype=dtype)
    P = _permutations(LU_pivots, size=LU_data.shape[-2], dtype=dtype.numpy) if unpack_pivots else nothing
    if not unpack_data:
        return LuUnpack((P, nothing, new_empty(0, dtype=dtype)))
    return LuUnpack((P, *_triangles(LU_data)))


def _triangles(factors: Tensor) -> tuple[Tensor, Tensor]:
    size = min(factors.shape[-2:])
    ones = tensor_of(np.eye(factors.shape[-2], size, dtype=factors.spec.dtype.numpy))
    return factors[..., :size].tril(-1).contiguous() + ones, factors[..., :size, :].triu().contiguous()


@public("function", name="linalg.lu", out=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """P, L and U with A = P @ L @ U: a permutation, a unit lower and an upper triangular matrix.

    >>> import weft as torch
    >>> P, L, U = torch.linalg.lu(torch.tensor([[0.0, 2.0], [4.0, 6.0]]))
    >>> L, U
    (tensor([[1., 0.],
            [0., 1.]]), tensor([[4., 6.],
            [0., 2.]]))
    """
    factors, pivots, _ = _checked_lu_factor(A, pivot, "linalg.lu")
    return LU(lu_unpack(factors, pivots))


# ---- LDL -------------------------------------------------------------------------------------------------------------

LdlFactor = return_type("linalg_ldl_factor", ("LD", "pivots"))
LdlFactorEx = return_type("linalg_ldl_factor_ex", ("LD", "pivots", "info"))


@matrix_op
def _ldl_factor(a: np.ndarray, *, hermitian: bool) -> tuple[Tensor, Tensor, Tensor]:
    batch, size = a.shape[:-2], a.shape[-1]
    factors, pivots, infos = np.empty_like(a), np.empty((*batch, size), np.int32), np.zeros(batch, np.int32)
    name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
    factor = routine(name, a.dtype)
    if a.size:
        work = work_size(routine(f"{name}_lwork", a.dtype)(size, lower=True))
        for i in each(batch):
            factors[i], pivots[i], infos[i] = factor(a[i], lower=True, lwork=work)
    return columns(np.tril(factors)), rows(pivots), rows(infos)


@public("function", name="linalg.ldl_factor_ex", out=True)
def linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """A compact A = L @ D @ L.mT of symmetric (or Hermitian) matrices, LAPACK's pivots and info."""
    name = "torch.linalg.ldl_factor_ex"
    check_tensor(A, "linalg.ldl_factor_ex", "input")
    check_square(A, name)
    check_floating(A, name)
    check_supported(A, "ldl_factor_kernel_cpu")
    factors, pivots, info = _ldl_factor(A, hermitian=hermitian)
    if check_errors:
        _check_ldl(info, name)
    return LdlFactorEx((factors, pivots, info))


def _check_ldl(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise RuntimeError(f"{name}: {failed[0]}D[{failed[1]},{failed[1]}] is exactly zero")


@public("function", name="linalg.ldl_factor", out=True)
def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """Like `linalg.ldl_factor_ex`; raises if a factor is singular."""
    factors, pivots, info = linalg_ldl_factor_ex(A, hermitian=hermitian)
    _check_ldl(info, "torch.linalg.ldl_factor")
    return LdlFactor((factors, pivots))


# NumPy's QR takes a whole stack at once, but computes in double precision; that is faster for matrices of up to this
# many elements.
SMALL_MATRIX = 2048

# ---- QR --------------------------------------------------------------------------------------------------------------

QR = return_type("linalg_qr", ("Q", "R"))
OldQR = return_type("qr", ("Q", "R"))
Geqrf = return_type("geqrf", ("a", "tau"))


@matrix_op
def _qr(a: np.ndarray, *, mode: Any) -> tuple[Tensor, ...]:
    if math.prod(a.shape[-2:]) > SMALL_MATRIX:
        return _qr_of_large(a, mode)
    found: Any = np.linalg.qr(a, mode=mode)
    return (columns(found),) if mode == "r" else tuple(map(columns, found))


def _qr_of_large(a: np.ndarray, mode: str) -> tuple[Tensor, ...]:
    (m, n), batch = a.shape[-2:], a.shape[:-2]
    k, width = min(m, n), m if mode == "complete" else min(m, n)
    factor, product = routine("geqrf", a.dtype), routine("orgqr", a.dtype, "ungqr")
    work = work_size(routine("geqrf_lwork", a.dtype)(m, n))
    upper, basis = np.zeros((*batch, width, n), a.dtype), np.zeros((*batch, m, width), a.dtype)
    for i in each(batch):
        reflectors, scales, _, _ = factor(a[i], lwork=work)
        upper[i][:k] = np.triu(reflectors[:k])
        if mode != "r":
            basis[i][:, :k] = reflectors[:, :k]
            basis[i] = product(basis[i], scales, lwork=64 * width)[0]
    return (columns(upper),) if mode == "r" else (columns(basis), columns(upper))


@public("function", name="linalg.qr", out=True)
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """A = Q @ R with orthonormal columns in Q and R upper triangular.

    Shapes, k = min(m, n): [..., m, n] -> Q [..., m, k], R [..., k, n]; "complete": Q [..., m, m], R [..., m, n];
    "r": Q is empty.
    """
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_supported(A, "geqrf_cpu")
    found = _qr(A, mode=mode)
    return QR(found if len(found) == 2 else (new_empty(0, dtype=A.spec.dtype), *found))


@public("function method", out=True)
def qr(input: Tensor, some: bool = True) -> Any:
    """The older form of `linalg.qr`."""
    return OldQR(linalg_qr(input, "reduced" if some else "complete"))


@matrix_op
def _geqrf(a: np.ndarray) -> tuple[Tensor, Tensor]:
    reflectors, scales = np.linalg.qr(a, mode="raw")
    return columns(reflectors.swapaxes(-1, -2)), rows(scales)


@public("function method", out=True)
def geqrf(input: Tensor) -> Any:
    """LAPACK's QR: R on and above the diagonal, the Householder vectors of Q below it, and their factors tau."""
    check_matrix(input, "torch.geqrf", "input")
    check_supported(input, "geqrf_cpu")
    return Geqrf(_geqrf(input))


@matrix_op
def _householder_product(a: np.ndarray, tau: np.ndarray) -> Tensor:
    result = np.array(a)
    product = routine("orgqr", a.dtype, "ungqr")
    if tau.shape[-1] == 0:  # no reflections: the first columns of the identity
        result[...] = np.eye(*a.shape[-2:])
    elif a.size:
        for i in each(a.shape[:-2]):
            work = work_size(product(a[i], tau[i], lwork=-1)[1])
            result[i] = product(a[i], tau[i], lwork=work)[0]
    return columns(result)


@public("function", name="linalg.householder_product", out=True)
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first n columns of the product of k Householder matrices: [..., m, n], [..., k] -> [..., m, n]."""
    name = "torch.linalg.householder_product"
    check_tensor(input, "linalg.householder_product", "input")
    check_tensor(tau, "linalg.householder_product", "tau", 2)
    if input.dim() < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    _check_reflectors(input, tau, name)
    if n < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_supported(input, "orgqr_cpu")
    return _householder_product(input, tau)


def _check_reflectors(input: Tensor, tau: Tensor, name: str) -> None:
    if input.dim() - tau.dim() != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.dim()} and "
            f"input.ndim is equal to {input.dim()}"
        )
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if tau.spec.dtype is not input.spec.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.spec.dtype} does not match input dtype {input.spec.dtype}"
        )


@public("function method", out=True)
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The older name of `linalg.householder_product`."""
    return householder_product(input, input2)


@matrix_op
def _ormqr(a: np.ndarray, tau: np.ndarray, c: np.ndarray, *, left: bool, transpose: bool) -> Tensor:
    result = np.array(c)
    multiply = routine("ormqr", a.dtype, "unmqr")
    adjoint = "C" if a.dtype.kind == "c" else "T"
    side, operation = "L" if left else "R", adjoint if transpose else "N"
    if c.size and tau.size:
        for i in each(c.shape[:-2]):
            reflectors = a[i][:, : tau.shape[-1]]
            work = work_size(multiply(side, operation, reflectors, tau[i], c[i], -1)[1])
            result[i] = multiply(side, operation, reflectors, tau[i], c[i], work)[0]
    return columns(result)


@public("function method", out=True)
def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """`input3` multiplied by the whole Q that the Householder vectors `input` and factors `input2` stand for."""
    name = "torch.ormqr"
    for tensor, what in ((input, "input"), (input3, "other")):
        if tensor.dim() < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    side = -2 if left else -1
    if input3.shape[side] < input2.shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if input3.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if input.shape[-1] < input2.shape[-1]:
        raise RuntimeError(f"{name}: tau.shape[-1] must be less than or equal to input.shape[-1]")
    _check_reflectors(input, input2, name)
    if input.shape[:-2] != input3.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {list(input3.shape[:-2])}"
        )
    if input3.spec.dtype is not input.spec.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but input has dtype {input.spec.dtype} and "
            f"other has dtype {input3.spec.dtype}"
        )
    check_supported(input, "ormqr_cpu")
    return _ormqr(input, input2, input3, left=left, transpose=transpose)


# ---- Eigenvalues -----------------------------------------------------------------------------------------------------

Eig = return_type("linalg_eig", ("eigenvalues", "eigenvectors"))
Eigh = return_type("linalg_eigh", ("eigenvalues", "eigenvectors"))


def _converging(function: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
            "repeated eigenvalues."
        ) from None


@matrix_op
def _eig(a: np.ndarray) -> tuple[Tensor, Tensor]:
    wide = np.result_type(a.dtype, np.complex64)
    values, vectors = _converging(np.linalg.eig, "linalg.eig", a)
    return rows(values.astype(wide)), columns(vectors.astype(wide))


@matrix_op
def _eigvals(a: np.ndarray) -> Tensor:
    values = _converging(np.linalg.eigvals, "linalg.eigvals", a)
    return rows(values.astype(np.result_type(a.dtype, np.complex64)))


def _check_eig(A: Tensor, name: str) -> None:
    check_tensor(A, name, "input")
    check_square(A, name)
    if A.spec.dtype.category < 2:
        raise RuntimeError(f"Unknown Complex ScalarType for {LEGACY_NAMES[A.spec.dtype]}")
    check_supported(A, "linalg_eig_out_cpu")
    if not np.isfinite(array(A.detach())).all():
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")


@public("function", name="linalg.eig", out=True)
def eig(input: Tensor) -> Any:
    """Eigenvalues and eigenvectors, as complex numbers: A @ V = V * eigenvalues. Not in any order."""
    _check_eig(input, "linalg.eig")
    return Eig(_eig(input))


@public("function", name="linalg.eigvals", out=True)
def eigvals(input: Tensor) -> Tensor:
    """The eigenvalues, as complex numbers, in no particular order."""
    _check_eig(input, "linalg.eigvals")
    return _eigvals(input)


@matrix_op
def _eigh(a: np.ndarray, *, UPLO: str) -> tuple[Tensor, Tensor]:
    values, vectors = _converging(np.linalg.eigh, "linalg.eigh", a, UPLO)
    return rows(values), columns(vectors)


def _check_eigh(A: Tensor, UPLO: str, name: str) -> str:
    check_tensor(A, name, "input")
    check_square(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_supported(A, "linalg_eigh_cpu")
    return UPLO.upper()


@public("function", name="linalg.eigh", out=True)
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Eigenvalues, ascending, and orthonormal eigenvectors of symmetric or Hermitian matrices.

    Only the triangle `UPLO` ("L" or "U") is read.
    """
    return Eigh(_eigh(A, UPLO=_check_eigh(A, UPLO, "linalg.eigh")))


@public("function", name="linalg.eigvalsh", out=True)
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues, ascending, of symmetric or Hermitian matrices."""
    UPLO = _check_eigh(A, UPLO, "linalg.eigvalsh")
    return _eigh(A, UPLO=UPLO)[0] if A.requires_grad else _eigvalsh(A, UPLO=UPLO)


@matrix_op
def _eigvalsh(a: np.ndarray, *, UPLO: str) -> Tensor:
    return rows(_converging(np.linalg.eigvalsh, "linalg.eigh", a, UPLO))


# ---- Singular values -------------------------------------------------------------------------------------------------

SVD = return_type("linalg_svd", ("U", "S", "Vh"))
OldSVD = return_type("svd", ("U", "S", "V"))


def _singular(a: np.ndarray, **options: Any) -> Any:
    try:
        return np.linalg.svd(a, **options)
    except np.linalg.LinAlgError:
        reason = (
            "input matrix contained non-finite values."
            if not np.isfinite(a).all()
            else "input matrix is ill-conditioned or has too many repeated singular values."
        )
        raise LinAlgError(f"linalg.svd: The algorithm failed to converge because the {reason}") from None


@matrix_op
def _svd(a: np.ndarray, *, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    left, values, right = _singular(a, full_matrices=full_matrices)
    return columns(left), rows(values), columns(right)


@matrix_op
def _svdvals(a: np.ndarray) -> Tensor:
    return rows(_singular(a, compute_uv=False))


def _check_svd(A: Tensor, driver: str | None, name: str) -> None:
    check_tensor(A, name)
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    check_supported(A, "linalg_svd_cpu")


@public("function", name="linalg.svd", out=True)
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """A = U @ diag(S) @ Vh with orthonormal columns in U and rows in Vh, S descending.

    Shapes, k = min(m, n): [..., m, n] -> U [..., m, m or k], S [..., k], Vh [..., n or k, n].
    """
    _check_svd(A, driver, "linalg.svd")
    return SVD(_svd(A, full_matrices=full_matrices))


@public("function", name="linalg.svdvals", out=True)
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, descending: [..., m, n] -> [..., min(m, n)].

    >>> import weft as torch
    >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    _check_svd(A, driver, "linalg.svdvals")
    return _svd(A, full_matrices=False)[1] if A.requires_grad else _svdvals(A)


@public("function method", out=True)
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """The older form of `linalg.svd`: U, S and V with A = U @ diag(S) @ V.mH."""
    check_matrix(input, "linalg.svd")
    if not compute_uv:
        *batch, m, n = input.shape
        zeros = [input.new_zeros((*batch, size, size)) for size in (m, n)]
        return OldSVD((zeros[0], svdvals(input), zeros[1].mH))
    U, S, Vh = linalg_svd(input, not some)
    return OldSVD((U, S, Vh.mH))


# ---- Removed names ---------------------------------------------------------------------------------------------------


class _Removed(NamedTuple):
    name: str
    hint: str


# fmt: off
_REMOVED = (
    _Removed("eig", " `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors."),
    _Removed("symeig", " The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower triangular portion."),
    _Removed("lstsq", " `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`."),
    _Removed("solve", " `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the LU factorization."),
    _Removed("matrix_rank", ""),
)
# fmt: on


def _remove(removed: _Removed) -> None:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed.{removed.hint}"
        )

    function.__name__ = removed.name
    function.__doc__ = f"Removed from PyTorch: see `linalg.{removed.name}`."
    public("function" if removed.name == "matrix_rank" else "function method", name=removed.name)(function)


for _removed in _REMOVED:
    _remove(_removed)
