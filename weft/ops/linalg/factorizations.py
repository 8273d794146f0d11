"""Factorizes matrices: Cholesky, LU, LDL, QR."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...core.derivative import differentiate, nondifferentiable
from ...core.dtype import from_numpy_dtype
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, own_dim
from ...families.custom_vjp import custom_vjp
from ..assembly.joining import cat
from ..assembly.padding import pad
from ..creation.creation import empty as new_empty
from ..tensor.node_names import with_node_name
from ..views.diagonal import with_diagonal
from . import device_plans, native, stacks
from .equations import solve_triangular
from .lapack import (
    LinAlgError,
    check_floating,
    check_matrix,
    check_square,
    check_supported,
    check_tensor,
    columns,
    columns_like,
    each,
    eye_like,
    first_failure,
    infos_spec,
    matrix_op,
    routine,
    rows,
    work_size,
)
from .matmul import matmul

# ---- Cholesky --------------------------------------------------------------------------------------------------------

CholeskyEx = return_type("linalg_cholesky_ex", ("L", "info"))


@matrix_op
def _linalg_cholesky_ex(a: np.ndarray, *, upper: bool) -> tuple[Tensor, Tensor]:
    infos = np.zeros(a.shape[:-2], np.int32)
    try:
        factor = _small_cholesky(a, upper) if stacks.beats_numpy(a) else np.linalg.cholesky(a, upper=upper)
    except np.linalg.LinAlgError:
        factor = np.empty_like(a)
        potrf = routine("potrf", a.dtype)
        for i in each(a.shape[:-2]):
            factor[i], infos[i] = potrf(a[i], lower=not upper, clean=True)
    unknown = np.isnan(factor.diagonal(0, -2, -1))  # OpenBLAS does not stop at NaN
    if unknown.any():
        infos = np.where((infos == 0) & unknown.any(-1), unknown.argmax(-1) + 1, infos).astype(np.int32)
    return columns(factor), rows(infos)


def _small_cholesky(a: np.ndarray, upper: bool) -> np.ndarray:
    inner = stacks.inside_out(a.swapaxes(-2, -1).conj() if upper else a, a.shape[:-2])
    stacks.cholesky(inner)
    last = inner[-1, -1].real  # inf or NaN if the elimination met a zero or a negative number before
    if not ((0 < last) & np.isfinite(last)).all():
        raise np.linalg.LinAlgError  # LAPACK says where
    factor = stacks.outside_in(inner)
    return factor.swapaxes(-2, -1).conj() if upper else factor


_linalg_cholesky_ex.on_memory(native.cholesky_plan)
_linalg_cholesky_ex.on_device(device_plans.cholesky_plan)


@_linalg_cholesky_ex.spec_rule
def _linalg_cholesky_ex_specs(a: Spec, *, upper: bool) -> tuple[Spec, ...]:
    return columns_like(a.shape, a), infos_spec(a.shape[:-2])


def _cholesky_rule(ct, out, a, upper):
    """The formulas are from Murray 2016, "Differentiation of the Cholesky decomposition", eq. 10."""
    factor, ct = out[0], ct[0]
    if upper:
        factor, ct = factor.mH, ct.mH
    inner = matmul(factor.mH, ct)
    below = inner.tril(-1)
    inner = (below + below.mH + inner.diagonal(0, -2, -1).diag_embed()) * 0.5
    half = solve_triangular(factor.mH, inner, upper=True)
    return (solve_triangular(factor, half, upper=False, left=False),)


differentiate(_linalg_cholesky_ex, joint=_cholesky_rule)


def _checked_cholesky(A: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    check_square(A, "linalg.cholesky")
    check_floating(A, "linalg.cholesky")
    check_supported(A, "cholesky_cpu")
    return _linalg_cholesky_ex(A, upper=upper)


def _check_positive_definite(info: Tensor, name: str) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[0]}The factorization could not be completed because the input is not positive-definite "
            f"(the leading minor of order {failed[1]} is not positive-definite)."
        )


@public("function", name="linalg.cholesky", out=True, autocast="raise")
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L with A = L @ L.mH of positive-definite matrices, or its adjoint if `upper`.

    Shapes: [..., n, n] -> [..., n, n]. Only one triangle of the input is read.
    Raises: LinAlgError naming the first matrix that is not positive-definite.
    """
    factor, info = _checked_cholesky(input, upper)
    _check_positive_definite(info, "linalg.cholesky")
    return factor


@public("function", name="linalg.cholesky_ex", out=True)
def linalg_cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Like `linalg.cholesky`, with LAPACK's info (0, or the order of the minor that fails) instead of an error."""
    factor, info = _checked_cholesky(input, upper)
    if check_errors:
        _check_positive_definite(info, "linalg.cholesky_ex")
    return CholeskyEx((factor, info))


@public("function method", out=True, autocast="raise")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Compute the same as `linalg.cholesky`, whose older name this is."""
    check_square(input, "cholesky")
    check_supported(input, "cholesky_cpu")
    factor, info = _linalg_cholesky_ex(input, upper=upper)
    _check_positive_definite(info, "cholesky")
    return with_node_name(factor, "CholeskyBackward0")


# ---- LU --------------------------------------------------------------------------------------------------------------

LU = return_type("linalg_lu", ("P", "L", "U"))
LuFactor = return_type("linalg_lu_factor", ("LU", "pivots"))
LuFactorEx = return_type("linalg_lu_factor_ex", ("LU", "pivots", "info"))
OldLU = return_type("_lu_with_info", ("LU", "pivots", "info"))
LuUnpack = return_type("lu_unpack", ("P", "L", "U"))


@matrix_op
def _linalg_lu_factor_ex(a: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    batch, size = a.shape[:-2], min(a.shape[-2:])
    if stacks.beats_scipy(a):
        inner = stacks.inside_out(a, batch)
        swaps, infos = stacks.lu(inner)
        return columns(stacks.outside_in(inner)), rows(np.moveaxis(swaps, 0, -1) + np.int32(1)), rows(infos)
    factors, pivots, infos = np.empty_like(a), np.empty((*batch, size), np.int32), np.zeros(batch, np.int32)
    getrf = routine("getrf", a.dtype)
    if a.size:
        for i in each(batch):
            factors[i], pivots[i], infos[i] = getrf(a[i])
    pivots += 1  # LAPACK counts from 1, SciPy from 0
    return columns(factors), rows(pivots), rows(infos)


_linalg_lu_factor_ex.on_memory(native.lu_plan)
_linalg_lu_factor_ex.on_device(device_plans.lu_plan)


@_linalg_lu_factor_ex.spec_rule
def _linalg_lu_factor_ex_specs(a: Spec) -> tuple[Spec, ...]:
    *batch, m, n = a.shape
    return columns_like(a.shape, a), infos_spec((*batch, min(m, n))), infos_spec(batch)


def _lu_rule(ct_L, ct_U, P, L, U):
    """The cotangent of A = P @ L @ U, of which L or U is one triangle and, of a rectangular A, a block beside it.

    Source: Lezcano 2022, "Differentiating the LU decomposition" (the derivation in PyTorch's documentation of it).
    """
    k = U.shape[-2]
    wide, tall = U.shape[-1] > k, L.shape[-2] > k
    L1, L2 = (L[..., :k, :], L[..., k:, :]) if tall else (L, None)
    U1, U2 = (U[..., :k], U[..., k:]) if wide else (U, None)
    lower = upper = None
    if ct_L is not None:
        ct_L = ct_L.tril(-1)
        lower = matmul(L1.mH, ct_L[..., :k, :])
        upper = None if L2 is None else -matmul(L2.mH, ct_L[..., k:, :])
    if ct_U is not None:
        ct_U = ct_U.triu()
        upper = _sum(upper, matmul(ct_U[..., :k], U1.mH))
        lower = _sum(lower, None if U2 is None else -matmul(ct_U[..., k:], U2.mH))
    inner = _sum(None if lower is None else lower.tril(-1), None if upper is None else upper.triu())
    half = solve_triangular(L1.mH, inner, upper=True, unitriangular=True)
    ct_square = solve_triangular(U1.mH, half, upper=False, left=False)
    if U2 is not None:
        beside = ct_square.new_zeros((*ct_square.shape[:-1], U2.shape[-1]))
        if ct_U is not None:
            beside = solve_triangular(L.mH, ct_U[..., k:], upper=True, unitriangular=True)
        ct_square = cat((ct_square, beside), -1)
    if L2 is not None:
        below = ct_square.new_zeros((*ct_square.shape[:-2], L2.shape[-2], ct_square.shape[-1]))
        if ct_L is not None:
            below = solve_triangular(U.mH, ct_L[..., k:, :], upper=False, left=False)
        ct_square = cat((ct_square, below), -2)
    return matmul(P, ct_square)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of cotangents, where None stands for zero."""
    return b if a is None else a if b is None else a + b


def _lu_factor_rule(ct, out, a):
    P, L, U = lu_unpack(*out[:2])
    k = U.shape[-2]
    return (_lu_rule(ct[0][..., :k], ct[0][..., :k, :], P, L, U),)


differentiate(_linalg_lu_factor_ex, joint=_lu_factor_rule)


def _checked_lu_factor(A: Tensor, pivot: bool, name: str) -> tuple[Tensor, Tensor, Tensor]:
    check_tensor(A, "linalg.lu_factor")
    if A.dim() < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    check_supported(A, "lu_cpu")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return _linalg_lu_factor_ex(A)


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
    """Factorize as `linalg.lu_factor`, with LAPACK's info (0, or the first zero on the diagonal of U) as no error."""
    factors, pivots, info = _checked_lu_factor(A, pivot, "torch.lu_factor")
    if check_errors:
        _check_nonzero_diagonal(info)
    return LuFactorEx((factors, pivots, info))


@public("method", name="lu")
def lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Factorize as `linalg.lu_factor_ex`: (LU, pivots), and infos if asked for."""
    factors, pivots, info = _checked_lu_factor(self, pivot, "torch.lu_factor")
    if get_infos:
        return factors, pivots, info
    _check_nonzero_diagonal(info)
    return factors, pivots


@public("function", out=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """Factorize as `linalg.lu_factor_ex`: (LU, pivots), and infos if asked for."""
    factorization = lu_method(A, pivot, get_infos)
    return OldLU(factorization) if get_infos else factorization


_BAD_PIVOTS = (
    "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
    "lu_factor?\n"
)


@matrix_op
def _permutations(pivots: np.ndarray, *, size: int, dtype: Any) -> Tensor:
    """The matrices that undo the row swaps of a factorization."""
    if pivots.size and not 1 <= pivots.min() <= pivots.max() <= size:
        raise RuntimeError(
            f"{_BAD_PIVOTS}LU.size(-2) is {size}, the pivots lie between {pivots.min()} and {pivots.max()}"
        )
    batch = pivots.shape[:-1]
    order = np.broadcast_to(np.arange(size), (*batch, size)).copy()
    for k in range(pivots.shape[-1]):
        swapped = pivots[..., k : k + 1].astype(np.int64) - 1
        held = np.take_along_axis(order, swapped, -1)
        np.put_along_axis(order, swapped, order[..., k : k + 1], -1)
        order[..., k : k + 1] = held
    permutations = np.zeros((*batch, size, size), dtype)
    np.put_along_axis(permutations, order[..., None, :], 1, -2)
    return rows(permutations)


_permutations.derivative = nondifferentiable
_permutations.on_memory(native.permutations_plan)
_permutations.on_device(device_plans.permutations_plan)


@_permutations.spec_rule
def _permutations_specs(pivots: Spec, *, size: int, dtype: Any) -> Spec:
    return contiguous_spec((*pivots.shape[:-1], size, size), from_numpy_dtype(dtype))


@public("function", out=True)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """P, L and U with A = P @ L @ U from what `linalg.lu_factor` gives; parts not asked for are empty."""
    check_tensor(LU_data, "lu_unpack", "LU_data")
    check_tensor(LU_pivots, "lu_unpack", "LU_pivots", 2)
    if LU_data.dim() < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        )
    if LU_pivots.spec.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    dtype = LU_data.spec.dtype
    nothing = new_empty(0, dtype=dtype)
    P = nothing
    if unpack_pivots:
        P = _permutations(_fitting_pivots(LU_data, LU_pivots), size=LU_data.shape[-2], dtype=dtype.numpy)
    if not unpack_data:
        return LuUnpack((P, nothing, new_empty(0, dtype=dtype)))
    return LuUnpack((P, *_lu_unpack(LU_data)))


def _fitting_pivots(LU_data: Tensor, pivots: Tensor) -> Tensor:
    """The pivots that the factors need, for each matrix of the stack; further ones are ignored, as in PyTorch."""
    *batch, m, n = LU_data.shape
    count = pivots.shape[-1] if pivots.dim() else 0
    if count < min(m, n):
        raise RuntimeError(
            f"{_BAD_PIVOTS}Factors of {m} by {n} matrices have {min(m, n)} pivots each, but pivots of shape "
            f"{list(pivots.shape)} were given"
        )
    return pivots.narrow(-1, 0, min(m, n)).expand(*batch, min(m, n))


def _triangles_rule(ct, out, factors, *, specs):
    ct_L, ct_U = ct
    m, n = specs[0].shape[-2:]
    if ct_L is not None:
        ct_L = pad(ct_L.tril(-1), (0, n - ct_L.shape[-1]))
    if ct_U is not None:
        ct_U = pad(ct_U.triu(), (0, 0, 0, m - ct_U.shape[-2]))
    return (_sum(ct_L, ct_U),)


@custom_vjp(joint=_triangles_rule)
def _lu_unpack(factors: Tensor) -> tuple[Tensor, Tensor]:
    size = min(factors.shape[-2:])
    lower = with_diagonal(factors[..., :size].tril(-1).contiguous(), 1)
    return lower, factors[..., :size, :].triu().contiguous()


@public("function", name="linalg.lu", out=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Return P, L and U with A = P @ L @ U: a permutation, a unit lower and an upper triangular matrix.

    >>> import weft as torch
    >>> P, L, U = torch.linalg.lu(torch.tensor([[0.0, 2.0], [4.0, 6.0]]))
    >>> L, U
    (tensor([[1., 0.],
            [0., 1.]]), tensor([[4., 6.],
            [0., 2.]]))
    """
    P, L, U = _linalg_lu(A, pivot)
    return LU((P.detach() if P.requires_grad else P, L, U))


@custom_vjp(joint=lambda ct, out, A, pivot: (_lu_rule(ct[1], ct[2], *out), None))
def _linalg_lu(A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    factors, pivots, _ = _checked_lu_factor(A, pivot, "linalg.lu")
    return lu_unpack(factors, pivots)


# ---- LDL -------------------------------------------------------------------------------------------------------------

LdlFactor = return_type("linalg_ldl_factor", ("LD", "pivots"))
LdlFactorEx = return_type("linalg_ldl_factor_ex", ("LD", "pivots", "info"))


@matrix_op(node_name="NotImplemented")  # as in PyTorch
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


@_ldl_factor.spec_rule
def _ldl_factor_specs(a: Spec, *, hermitian: bool) -> tuple[Spec, ...]:
    return columns_like(a.shape, a), infos_spec(a.shape[:-1]), infos_spec(a.shape[:-2])


@public("function", name="linalg.ldl_factor_ex", out=True)
def linalg_ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Return a compact A = L @ D @ L.mT of symmetric (or Hermitian) matrices, LAPACK's pivots and info."""
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


# Elements of a matrix. NumPy's QR computes in double precision, but takes a whole stack in one call. Up to this size, that is
# faster than a call of SciPy for each matrix (measured).
SMALL_MATRIX = 2048

# ---- QR --------------------------------------------------------------------------------------------------------------

QR = return_type("linalg_qr", ("Q", "R"))
OldQR = return_type("qr", ("Q", "R"))
Geqrf = return_type("geqrf", ("a", "tau"))


@matrix_op
def _linalg_qr(a: np.ndarray, *, mode: Any) -> tuple[Tensor, ...]:
    if math.prod(a.shape[-2:]) > SMALL_MATRIX:
        return _qr_of_large(a, mode)
    factors: Any = np.linalg.qr(a, mode=mode)
    return (columns(factors),) if mode == "r" else tuple(map(columns, factors))


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


_linalg_qr.on_memory(native.qr_plan)
_linalg_qr.on_device(device_plans.qr_plan)


@_linalg_qr.spec_rule
def _linalg_qr_specs(a: Spec, *, mode: str) -> tuple[Spec, ...]:
    *batch, m, n = a.shape
    width = m if mode == "complete" else min(m, n)
    upper = columns_like((*batch, width, n), a)
    return (upper,) if mode == "r" else (columns_like((*batch, m, width), a), upper)


def _qr_rule(ct, out, a, mode, *, specs):
    """The formulas are from Walter and Lehmann 2018, "Algorithmic differentiation of linear algebra functions".

    The first columns of a wide matrix determine Q, and R beside them is Q.mH @ A.
    """
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    m, n = specs[0].shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
        )
    (ct_Q, ct_R), (Q, R) = ct, out
    beside = None
    if m < n and ct_R is not None:
        beside = matmul(Q, ct_R[..., m:])
        ct_Q = _sum(ct_Q, matmul(Q, matmul(R[..., m:], ct_R[..., m:].mH)))
    R = R[..., :m]
    inner = _sum(
        None if ct_R is None else matmul(ct_R[..., :m], R.mH), None if ct_Q is None else -matmul(Q.mH, ct_Q)
    )
    above = inner.triu(1)
    inner = above + above.mH + inner.diagonal(0, -2, -1).real.diag_embed()
    ct_a = _sum(matmul(Q, inner), ct_Q)
    ct_a = solve_triangular(R.mH, ct_a, upper=False, left=False)
    if m < n:
        beside = ct_a.new_zeros((*ct_a.shape[:-1], n - m)) if beside is None else beside
        ct_a = cat((ct_a, beside), -1)
    return (ct_a,)


differentiate(_linalg_qr, joint=_qr_rule)


@public("function", name="linalg.qr", out=True, autocast="raise")
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """Return A = Q @ R with orthonormal columns in Q and R upper triangular.

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
    factors = _linalg_qr(A, mode=mode)
    return QR(factors if len(factors) == 2 else (new_empty(0, dtype=A.spec.dtype), *factors))


@public("function method", out=True, autocast="raise")
def qr(input: Tensor, some: bool = True) -> Any:
    """Factorize as `linalg.qr`: its older form."""
    return OldQR(linalg_qr(input, "reduced" if some else "complete"))


@matrix_op
def _geqrf(a: np.ndarray) -> tuple[Tensor, Tensor]:
    reflectors, scales = np.linalg.qr(a, mode="raw")
    return columns(reflectors.swapaxes(-1, -2)), rows(scales)


_geqrf.on_device(device_plans.geqrf_plan)


@_geqrf.spec_rule
def _geqrf_specs(a: Spec) -> tuple[Spec, ...]:
    *batch, m, n = a.shape
    return columns_like(a.shape, a), contiguous_spec((*batch, min(m, n)), a.dtype)


@public("function method", out=True, autocast="raise")
def geqrf(input: Tensor) -> Any:
    """Return LAPACK's QR: R on and above the diagonal, the Householder vectors of Q below it, their factors tau."""
    check_matrix(input, "torch.geqrf", "input")
    check_supported(input, "geqrf_cpu")
    return Geqrf(_geqrf(input))


@matrix_op
def _linalg_householder_product(a: np.ndarray, tau: np.ndarray) -> Tensor:
    result = np.array(a)
    product = routine("orgqr", a.dtype, "ungqr")
    if tau.shape[-1] == 0:  # no reflections: the first columns of the identity
        result[...] = np.eye(*a.shape[-2:])
    elif a.size:
        for i in each(a.shape[:-2]):
            work = work_size(product(a[i], tau[i], lwork=-1)[1])
            result[i] = product(a[i], tau[i], lwork=work)[0]
    return columns(result)


_linalg_householder_product.on_device(device_plans.householder_product_plan)


@_linalg_householder_product.spec_rule
def _linalg_householder_product_specs(a: Spec, tau: Spec) -> Spec:
    return columns_like(a.shape, a)


def _reflections_rule(
    ct: Tensor, start: Tensor, a: Tensor, tau: Tensor, last_first: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The chain rule through the reflections x - tau * v @ v.mH @ x, one after the other, that lead from `start`.

    Returns the cotangents of `a`, which has the vectors v below its diagonal, of their factors `tau` and of `start`.
    """
    columns = tau.shape[-1]
    ones = eye_like(a[..., :columns])
    below = a[..., :columns].tril(-1) + ones
    steps = [(k, below[..., k : k + 1], tau[..., k : k + 1, None]) for k in range(columns)]
    if last_first:
        steps.reverse()
    values = [start]
    for _, vector, factor in steps[:-1]:
        values.append(values[-1] - matmul(factor * vector, matmul(vector.mH, values[-1])))
    ct_vectors, ct_factors = [ct] * columns, [ct] * columns
    for (k, vector, factor), value in zip(reversed(steps), reversed(values), strict=True):
        row, column = matmul(vector.mH, value), matmul(ct.mH, vector)
        ct_factors[k] = -matmul(row, column).conj().squeeze(-1)
        ct_vectors[k] = -factor.conj() * matmul(ct, row.mH) - factor * matmul(value, column)
        ct = ct - matmul(factor.conj() * vector, column.mH)
    ct_a = pad(cat(ct_vectors, -1).tril(-1), (0, a.shape[-1] - columns))
    return ct_a, cat(ct_factors, -1), ct


def _householder_rule(ct, out, a, tau):
    if not tau.shape[-1]:
        return None, None
    identity = eye_like(a)
    return _reflections_rule(ct, identity.expand(a.shape), a, tau, True)[:2]


differentiate(_linalg_householder_product, joint=_householder_rule)


@public("function", name="linalg.householder_product", out=True, autocast="raise")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of the product of k Householder matrices: [..., m, n], [..., k] -> [..., m, n]."""
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
    return _linalg_householder_product(input, tau)


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


@public("function method", out=True, autocast="raise")
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """Compute the same as `linalg.householder_product`, whose older name this is."""
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


_ormqr.on_device(device_plans.ormqr_plan)


@_ormqr.spec_rule
def _ormqr_specs(a: Spec, tau: Spec, c: Spec, *, left: bool, transpose: bool) -> Spec:
    return columns_like(c.shape, c)


def _ormqr_rule(ct, out, a, tau, c, left, transpose):
    if not tau.shape[-1]:
        return None, None, ct
    if not left:  # c @ Q is the adjoint of Q.mH @ c.mH
        ct, c = ct.mH, c.mH
    if left != transpose:
        ct_a, ct_tau, ct_c = _reflections_rule(ct, c, a, tau, True)
    else:  # of Q.mH
        ct_a, ct_tau, ct_c = _reflections_rule(ct, c, a, tau.conj(), False)
        ct_tau = ct_tau.conj()
    return ct_a, ct_tau, ct_c if left else ct_c.mH


differentiate(_ormqr, joint=_ormqr_rule)


@public("function method", out=True, autocast="raise")
def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """`input3` multiplied by the whole Q that the Householder vectors `input` and factors `input2` stand for."""
    name = "torch.ormqr"
    for tensor, what in ((input, "input"), (input3, "other")):
        if tensor.dim() < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    own_dim(-1, input2.dim(), name)
    side = -2 if left else -1
    if input3.shape[side] < input2.shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if input3.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    if input2.shape[-1] != min(input3.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1]), which is "
            f"min({input3.shape[side]}, {input.shape[-1]}), but it is {input2.shape[-1]}"
        )
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
    @public("function" if removed.name == "matrix_rank" else "function method", name=removed.name, words={})
    def function(*args: Any, **kwargs: Any) -> Any:
        """Removed from PyTorch: see `linalg.{name}`."""
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed.{removed.hint}"
        )


for _removed in _REMOVED:
    _remove(_removed)
