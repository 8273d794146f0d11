"""Computes eigenvalues and singular values."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from ...core.batched import beneath
from ...core.derivative import differentiate
from ...core.dtype import LEGACY_NAMES
from ...core.public import public
from ...core.recording import needs_recording
from ...core.return_types import return_type
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...families.array_op import host_array
from ..views.diagonal import with_diagonal
from . import device_spectra, native
from .equations import linalg_solve
from .lapack import (
    LinAlgError,
    all_finite,
    check_floating,
    check_matrix,
    check_square,
    check_supported,
    check_tensor,
    columns,
    columns_like,
    columns_spec,
    first_matrix,
    matrix_op,
    not_finite,
    real_like,
    rows,
)
from .matmul import matmul

# ---- What the derivatives share ------------------------------------------------------------------------------------------


def _check_phases(*products: Tensor | None, error: str) -> None:
    """Raises: RuntimeError if a loss depends on the phases of vectors: vectors.mH @ ct is not real on the diagonal."""
    phases = [product.diagonal(0, -2, -1).imag for product in products if product is not None]
    if not phases[0].spec.device.backend.has_memory:
        return
    total = phases[0] if len(phases) == 1 else phases[0] + phases[1]
    if not beneath(total.detach().abs() <= 1e-2).all():
        raise RuntimeError(error)


def _differences(values: Tensor) -> Tensor:
    """Compute values[j] - values[i] at [i, j]."""
    return values.unsqueeze(-2) - values.unsqueeze(-1)


def _skew(square: Tensor) -> Tensor:
    return square - square.mH


# ---- Eigenvalues -----------------------------------------------------------------------------------------------------

Eig = return_type("linalg_eig", ("eigenvalues", "eigenvectors"))
Eigh = return_type("linalg_eigh", ("eigenvalues", "eigenvectors"))


def _converging(function: Any, name: str, *args: Any) -> Any:
    try:
        return function(*args)
    except np.linalg.LinAlgError:
        raise _not_converged(name) from None


def _not_converged(name: str, where: str = "") -> LinAlgError:
    return LinAlgError(
        f"{name}: {where}The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
        "repeated eigenvalues."
    )


@matrix_op
def _linalg_eig(a: np.ndarray) -> tuple[Tensor, Tensor]:
    wide = np.result_type(a.dtype, np.complex64)
    if not a.size:
        return rows(np.empty(a.shape[:-1], wide)), columns(a.astype(wide))
    values, vectors = _converging(np.linalg.eig, "linalg.eig", a)
    return rows(values.astype(wide)), columns(vectors.astype(wide))


_linalg_eig.on_memory(native.eig_plan)


@_linalg_eig.spec_rule
def _linalg_eig_specs(a: Spec) -> tuple[Spec, ...]:
    wide = a.dtype.to_complex()
    return contiguous_spec(a.shape[:-1], wide), columns_spec(a.shape, wide.numpy)


def _eig_rule(ct, out, a):
    """The formulas are from Boeddeker et al. 2017, "On the computation of complex-valued gradients", 4.2 and 4.3."""
    (ct_values, ct_vectors), (values, vectors) = ct, out
    adjoint = vectors.mH
    if ct_vectors is None:
        return (linalg_solve(adjoint, ct_values.unsqueeze(-1) * adjoint),)
    inner = matmul(adjoint, ct_vectors)
    _check_phases(inner, error=_EIG_PHASES.format("eig"))
    # Remove the part of the cotangent along each eigenvector, because eigenvectors keep norm 1.
    along = inner.diagonal(0, -2, -1).real
    inner = inner - matmul(adjoint, vectors) * along.unsqueeze(-2)
    inner = with_diagonal(inner, 0) / with_diagonal(_differences(values), 1).conj()
    if ct_values is not None:
        inner = inner + ct_values.diag_embed()
    return (linalg_solve(adjoint, matmul(inner, adjoint)),)


_EIG_PHASES = (
    "linalg_{}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The "
    "specified loss function depends on this quantity, so it is ill-defined."
)
differentiate(_linalg_eig, joint=_eig_rule, seed=0)


@matrix_op
def _eigvals(a: np.ndarray) -> Tensor:
    wide = np.result_type(a.dtype, np.complex64)
    if not a.size:
        return rows(np.empty(a.shape[:-1], wide))
    return rows(_converging(np.linalg.eigvals, "linalg.eigvals", a).astype(wide))


_eigvals.on_memory(native.eigvals_plan)


@_eigvals.spec_rule
def _eigvals_specs(a: Spec) -> Spec:
    return contiguous_spec(a.shape[:-1], a.dtype.to_complex())


def _check_eig(A: Tensor, name: str) -> None:
    check_tensor(A, name, "input")
    check_square(A, name)
    if A.spec.dtype.category < 2:
        raise RuntimeError(f"Unknown Complex ScalarType for {LEGACY_NAMES[A.spec.dtype]}")
    check_supported(A, "linalg_eig_out_cpu")
    if A.spec.device.backend.has_memory and not all_finite(host_array(beneath(A))):
        raise RuntimeError(f"torch.{name}: input tensor should not contain infs or NaNs.")


@public("function", name="linalg.eig", out=True, autocast="raise")
def eig(input: Tensor) -> Any:
    """Return eigenvalues and eigenvectors, as complex numbers: A @ V = V * eigenvalues. Not in any order."""
    _check_eig(input, "linalg.eig")
    return Eig(_linalg_eig(input))


@public("function", name="linalg.eigvals", out=True, autocast="raise")
def eigvals(input: Tensor) -> Tensor:
    """Return the eigenvalues, as complex numbers, in no particular order."""
    _check_eig(input, "linalg.eigvals")
    return _linalg_eig(input)[0] if needs_recording((input,)) else _eigvals(input)


@matrix_op
def _linalg_eigh(a: np.ndarray, *, UPLO: str) -> tuple[Tensor, Tensor]:
    if not a.size:
        return rows(np.empty(a.shape[:-1], a.real.dtype)), columns(a)
    _check_triangle(a, UPLO)
    values, vectors = _converging(np.linalg.eigh, "linalg.eigh", a, UPLO)
    return rows(values), columns(vectors)


_linalg_eigh.on_memory(native.eigh_plan)
_linalg_eigh.on_device(device_spectra.eigh_plan)


@_linalg_eigh.spec_rule
def _linalg_eigh_specs(a: Spec, *, UPLO: str) -> tuple[Spec, ...]:
    return real_like(a.shape[:-1], a), columns_like(a.shape, a)


def _eigh_rule(ct, out, a, UPLO):
    """The formulas are from Giles 2008, "Collected matrix derivative results", 3.1; the vectors change by rotations."""
    (ct_values, ct_vectors), (values, vectors) = ct, out
    if ct_vectors is None:
        return (matmul(vectors * ct_values.unsqueeze(-2), vectors.mH),)
    inner = matmul(vectors.mH, ct_vectors)
    if inner.spec.dtype.is_complex:
        _check_phases(inner, error=_EIG_PHASES.format("eigh"))
    inner = with_diagonal(_skew(inner), 0) / (2 * with_diagonal(_differences(values), 1))
    if ct_values is not None:
        inner = inner + ct_values.diag_embed()
    return (matmul(matmul(vectors, inner), vectors.mH),)


differentiate(_linalg_eigh, joint=_eigh_rule, seed=0)


def _check_triangle(a: np.ndarray, UPLO: str) -> None:
    """Raises: LinAlgError if the triangle that is read has inf or NaN. The other triangle may hold anything."""
    if all_finite(a):
        return
    spoiled = not_finite(np.tril(a) if UPLO == "L" else np.triu(a))
    if spoiled.any():
        raise _not_converged("linalg.eigh", first_matrix(spoiled))


def _check_eigh(A: Tensor, UPLO: str, name: str) -> str:
    check_tensor(A, name, "input")
    check_square(A, "linalg.eigh")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    check_supported(A, "linalg_eigh_cpu")
    return UPLO.upper()


@public("function", name="linalg.eigh", out=True, autocast="raise")
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """Return eigenvalues, ascending, and orthonormal eigenvectors of symmetric or Hermitian matrices.

    Only the triangle `UPLO` ("L" or "U") is read.
    """
    return Eigh(_linalg_eigh(A, UPLO=_check_eigh(A, UPLO, "linalg.eigh")))


@public("function", name="linalg.eigvalsh", out=True, autocast="raise")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues, ascending, of symmetric or Hermitian matrices."""
    UPLO = _check_eigh(A, UPLO, "linalg.eigvalsh")
    return _linalg_eigh(A, UPLO=UPLO)[0] if needs_recording((A,)) else _eigvalsh(A, UPLO=UPLO)


@matrix_op
def _eigvalsh(a: np.ndarray, *, UPLO: str) -> Tensor:
    if not a.size:
        return rows(np.empty(a.shape[:-1], a.real.dtype))
    _check_triangle(a, UPLO)
    return rows(_converging(np.linalg.eigvalsh, "linalg.eigh", a, UPLO))


_eigvalsh.on_memory(native.eigvalsh_plan)
_eigvalsh.on_device(device_spectra.eigvalsh_plan)


@_eigvalsh.spec_rule
def _eigvalsh_specs(a: Spec, *, UPLO: str) -> Spec:
    return real_like(a.shape[:-1], a)


# ---- Singular values -------------------------------------------------------------------------------------------------

SVD = return_type("linalg_svd", ("U", "S", "Vh"))
OldSVD = return_type("svd", ("U", "S", "V"))


_NOT_CONVERGED = "linalg.svd: {}The algorithm failed to converge because the input matrix {}"


def _singular(a: np.ndarray, **options: Any) -> Any:
    try:
        return np.linalg.svd(a, **options)
    except np.linalg.LinAlgError:
        reason = "is ill-conditioned or has too many repeated singular values."
        raise LinAlgError(_NOT_CONVERGED.format("", reason)) from None


def _refuse(spoiled: np.ndarray) -> None:
    """Raise for the first matrix that is true in `spoiled`."""
    if spoiled.any():
        raise LinAlgError(_NOT_CONVERGED.format(first_matrix(spoiled), "contained non-finite values."))


def _without_infinite(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Zeros in place of matrices with inf, and a factor for the results: NaN for these matrices, 1 for others.

    Raises: LinAlgError for NaN. PyTorch gives NaN as singular values of a matrix with inf.
    """
    _refuse(np.isnan(a).any((-2, -1)))
    infinite = not_finite(a)
    return np.where(infinite[..., None, None], 0, a), np.where(infinite, np.nan, 1).astype(a.real.dtype)


def _svd_with_nan(a: np.ndarray, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    finite, factor = _without_infinite(a)
    left, values, right = _singular(finite, full_matrices=full_matrices)
    stretched = factor[..., None, None]
    return columns(left * stretched), rows(values * factor[..., None]), columns(right * stretched)


@matrix_op
def _linalg_svd(a: np.ndarray, *, full_matrices: bool, infinite: bool) -> tuple[Tensor, Tensor, Tensor]:
    """`infinite`: a matrix with inf gives NaN, as `svdvals` does, instead of an error."""
    if not a.size:
        return _svd_of_empty(a, full_matrices)
    if not all_finite(a):
        if not infinite:
            _refuse(not_finite(a))
        return _svd_with_nan(a, full_matrices)
    left, values, right = _singular(a, full_matrices=full_matrices)
    return columns(left), rows(values), columns(right)


_linalg_svd.on_memory(native.svd_plan)
_linalg_svd.on_device(device_spectra.svd_plan)


@_linalg_svd.spec_rule
def _linalg_svd_specs(a: Spec, *, full_matrices: bool, infinite: bool) -> tuple[Spec, ...]:
    *batch, m, n = a.shape
    k = min(m, n)
    left = columns_like((*batch, m, m if full_matrices else k), a)
    return left, real_like((*batch, k), a), columns_like((*batch, n if full_matrices else k, n), a)


def _svd_of_empty(a: np.ndarray, full_matrices: bool) -> tuple[Tensor, Tensor, Tensor]:
    """No singular values, and identities as vectors. LAPACK takes time and workspace for the sizes alone."""
    *batch, m, n = a.shape
    k = min(m, n)
    vectors = []
    for shape in ((m, m if full_matrices else k), (n if full_matrices else k, n)):
        columns_spec((*batch, *shape), a.dtype)  # raises PyTorch's error if this is too large for any memory
        vectors.append(columns(np.broadcast_to(np.eye(*shape, dtype=a.dtype), (*batch, *shape))))
    return vectors[0], rows(np.empty((*batch, k), a.real.dtype)), vectors[1]


def _svd_rule(ct, out, a, full_matrices, infinite):
    """The formulas are from Townsend 2016, "Differentiating the SVD"; Wan and Zhang 2019, "Automatic
    differentiation for complex valued SVD", for the phases.
    """
    (ct_U, ct_S, ct_Vh), (U, S, Vh) = ct, out
    k = S.shape[-1]
    # Ignore the cotangents of vectors beyond the first k, because A does not determine these vectors.
    if full_matrices:
        U, Vh = U[..., :k], Vh[..., :k, :]
        ct_U = None if ct_U is None else ct_U[..., :k]
        ct_Vh = None if ct_Vh is None else ct_Vh[..., :k, :]
    if ct_U is None and ct_Vh is None:
        return (matmul(U * ct_S.unsqueeze(-2), Vh),)
    left = None if ct_U is None else matmul(U.mH, ct_U)
    right = None if ct_Vh is None else matmul(Vh, ct_Vh.mH)
    if U.spec.dtype.is_complex:
        _check_phases(left, right, error=_SVD_PHASES)
    gaps = with_diagonal(_differences(S) * (S.unsqueeze(-2) + S.unsqueeze(-1)), 1)
    of_U = None if left is None else _skew(left)
    of_V = None if right is None else _skew(right)
    inner = []
    if of_U is not None:
        inner.append(with_diagonal(of_U, 0) / gaps * S.unsqueeze(-2))
        if U.spec.dtype.is_complex:
            # PyTorch's forward mode divides a change of phase evenly between U and V.
            phase = of_U if of_V is None else (of_U - of_V) / 2
            inner.append((phase.diagonal(0, -2, -1) / (2 * S)).diag_embed())
    if of_V is not None:
        inner.append(S.unsqueeze(-1) * (with_diagonal(of_V, 0) / gaps))
    if ct_S is not None:
        inner.append(ct_S.diag_embed())
    ct_A = matmul(U, functools.reduce(operator.add, inner))
    if left is not None and U.shape[-2] > k:  # changes of U out of its columns
        ct_A = ct_A + (ct_U - matmul(U, left)) / S.unsqueeze(-2)
    ct_A = matmul(ct_A, Vh)
    if right is not None and Vh.shape[-1] > k:
        ct_A = ct_A + matmul(U, (ct_Vh - matmul(right.mH, Vh)) / S.unsqueeze(-1))
    return (ct_A,)


_SVD_PHASES = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified "
    "loss function depends on this phase term, making it ill-defined."
)
differentiate(_linalg_svd, joint=_svd_rule, seed=0)


@matrix_op
def _svdvals(a: np.ndarray) -> Tensor:
    if not a.size:
        return rows(np.empty((*a.shape[:-2], min(a.shape[-2:])), a.real.dtype))
    if all_finite(a):
        return rows(_singular(a, compute_uv=False))
    finite, factor = _without_infinite(a)
    return rows(_singular(finite, compute_uv=False) * factor[..., None])


_svdvals.on_memory(native.svdvals_plan)
_svdvals.on_device(device_spectra.svdvals_plan)


@_svdvals.spec_rule
def _svdvals_specs(a: Spec) -> Spec:
    return real_like((*a.shape[:-2], min(a.shape[-2:])), a)


def _check_svd(A: Tensor, driver: str | None, name: str) -> None:
    check_tensor(A, name)
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    check_supported(A, "linalg_svd_cpu")


@public("function", name="linalg.svd", out=True, autocast="raise")
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Return A = U @ diag(S) @ Vh with orthonormal columns in U and rows in Vh, S descending.

    Shapes, k = min(m, n): [..., m, n] -> U [..., m, m or k], S [..., k], Vh [..., n or k, n].
    """
    _check_svd(A, driver, "linalg.svd")
    return SVD(_linalg_svd(A, full_matrices=full_matrices, infinite=False))


@public("function", name="linalg.svdvals", out=True, autocast="raise")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, descending: [..., m, n] -> [..., min(m, n)].

    >>> import weft as torch
    >>> torch.linalg.svdvals(torch.tensor([[0.0, 2.0], [3.0, 0.0]]))
    tensor([3., 2.])
    """
    _check_svd(A, driver, "linalg.svdvals")
    return _linalg_svd(A, full_matrices=False, infinite=True)[1] if needs_recording((A,)) else _svdvals(A)


@public("function method", out=True, autocast="raise")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Factorize as `linalg.svd`, whose older form this is: U, S and V with A = U @ diag(S) @ V.mH."""
    check_matrix(input, "linalg.svd")
    if not compute_uv:
        *batch, m, n = input.shape
        zeros = [input.new_zeros((*batch, size, size)) for size in (m, n)]
        return OldSVD((zeros[0], svdvals(input), zeros[1].mH))
    U, S, Vh = linalg_svd(input, not some)
    return OldSVD((U, S, Vh.mH))
