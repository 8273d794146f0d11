"""Solves systems of linear equations by least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import int64
from ...core.iteration import broadcast_shapes
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...families.array_op import needs_values
from ...families.custom_vjp import custom_vjp
from . import device_least_squares, native
from .device_plans import has_kernels
from .lapack import (
    LinAlgError,
    all_finite,
    check_supported,
    check_tensor,
    columns,
    columns_like,
    each,
    matrix_op,
    real_like,
    routine,
    rows,
    work_size,
)
from .linalg import pinv, pinv_rule
from .matmul import matmul

Lstsq = return_type("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _least_squares(a: np.ndarray, b: np.ndarray, rcond: float, driver: str) -> tuple[np.ndarray, int, Any]:
    """One solution (with what LAPACK leaves below it), the rank and the singular values."""
    m, n = a.shape
    padded = np.zeros((max(m, n), b.shape[1]), b.dtype)
    padded[:m] = b
    if not a.size or not b.size:  # LAPACK's gels gives zeros then, and the others what is left of b
        return padded * (driver != "gels"), 0, np.zeros(min(m, n))
    size = (m, n, b.shape[1])
    if driver == "gels":
        work = work_size(routine("gels_lwork", a.dtype)(*size))
        _, solution, info = routine("gels", a.dtype)(a, padded, lwork=work)
        rank, values = min(m, n), np.zeros(0)
    elif driver == "gelsy":
        work = work_size(routine("gelsy_lwork", a.dtype)(*size, rcond))
        _, solution, _, rank, info = routine("gelsy", a.dtype)(a, padded, np.zeros(n, np.int32), rcond, work)
        values = np.zeros(0)
    elif driver == "gelss":
        work = work_size(routine("gelss_lwork", a.dtype)(*size))
        _, solution, values, rank, _, info = routine("gelss", a.dtype)(a, padded, cond=rcond, lwork=work)
    else:
        sizes = [work_size((answer,)) for answer in routine("gelsd_lwork", a.dtype)(*size)[:-1]]
        solution, values, rank, info = routine("gelsd", a.dtype)(a, padded, *sizes, rcond)
    if info:
        raise LinAlgError(
            "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not "
            f"have full rank (error code: {info})."
        )
    return solution, rank, values


def _check_numbers(a: np.ndarray, b: np.ndarray, driver: str) -> None:
    """Raises: RuntimeError for NaN, and for infinities in `a` if singular values are wanted."""
    for values, what in ((a, "input"), (b, "other")):
        if all_finite(values):
            continue
        if np.isnan(values).any():
            raise RuntimeError(
                f"torch.linalg.lstsq: {what} contains NaN, and then no solution is the closest one."
            )
        if values is a and driver in ("gelsd", "gelss"):
            raise RuntimeError(
                f"torch.linalg.lstsq: {what} contains inf, and then it has no singular values, which driver '{driver}' "
                "computes."
            )


@matrix_op
def _lstsq(
    a: np.ndarray, b: np.ndarray, *, rcond: float, driver: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _check_numbers(a, b, driver)
    (m, n), batch = a.shape[-2:], np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    real = np.empty(0, a.dtype).real.dtype
    solutions = np.zeros((*batch, max(m, n), b.shape[-1]), b.dtype)
    rank: Any = np.zeros(batch, np.int64)
    values = np.zeros((*batch, min(m, n)), real)
    for i in each(batch):
        solutions[i], rank[i], singular = _least_squares(a[i], b[i], rcond, driver)
        if driver in ("gelss", "gelsd"):
            values[i] = singular
    residuals = np.zeros(0, real)
    full = driver == "gels" or bool((rank == n).all())
    if m > n and driver != "gelsy" and full:
        residuals = (np.abs(solutions[..., n:, :]) ** 2).sum(-2)
    if driver == "gels":
        rank = np.zeros(0, np.int64)
    if driver not in ("gelss", "gelsd"):
        values = np.zeros(0, real)
    return columns(solutions), rows(residuals), rows(rank), rows(values)


_lstsq.on_memory(native.least_squares_plan)
_lstsq.on_device(device_least_squares.least_squares_plan)


@_lstsq.spec_rule
def _lstsq_specs(a: Spec, b: Spec, *, rcond: float, driver: str) -> tuple[Spec, ...]:
    m, n = a.shape[-2:]
    batch = broadcast_shapes("linalg.lstsq", a.shape[:-2], b.shape[:-2])
    has_values, nothing = driver in ("gelss", "gelsd"), real_like((0,), a)
    if has_values and m > n:  # there are residuals only if the rank is full
        raise needs_values(f"linalg.lstsq with driver '{driver}'", a.device)
    return (
        columns_like((*batch, max(m, n), b.shape[-1]), b),
        real_like((*batch, b.shape[-1]), a) if driver == "gels" and m > n else nothing,
        contiguous_spec((0,) if driver == "gels" else batch, int64),
        real_like((*batch, min(m, n)), a) if has_values else nothing,
    )


@public("function", name="linalg.lstsq", out=True, autocast="raise")
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """Compute X that minimises |A @ X - B|, for each column of B.

    Shapes: A [..., m, n], B [..., m, k] or [..., m] -> solution [..., n, k] or [..., n]; residuals [..., k] (if
    m > n and A has full rank), rank and singular values: each empty if the driver does not give it.
    Drivers: LAPACK's "gelsy", "gels" (full rank only), "gelsd" and "gelss". The default is "gelsy", and on GPUs "gels".
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
    if A.dim() - B.dim() not in (0, 1):
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1\n"
            f"shapes {list(A.shape)} and {list(B.shape)}"
        )
    if A.dim() > B.dim():  # PyTorch asks for this also where B is a matrix for all of the batch
        broadcast_shapes("linalg.lstsq", A.shape[:-2], B.shape[:-1], B.shape[:-2])
    vector = A.dim() > B.dim() and A.shape[:-1] == B.shape
    right = B.unsqueeze(-1) if vector or B.dim() == 1 else B
    if A.shape[-2] != right.shape[-2]:
        where = (
            "input.size(-2) should match other.size(-1)"
            if B.dim() == 1
            else "input.size(-2) should match other.size(-2)"
        )
        raise RuntimeError(f"{name}: {where}\nshapes {list(A.shape)} and {list(B.shape)}")
    if driver is None:  # as PyTorch's on CUDA
        driver = "gels" if has_kernels(A.spec) else "gelsy"
    if driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    check_supported(A, "linalg_lstsq_cpu")
    broadcast_shapes("linalg.lstsq", A.shape[:-2], right.shape[:-2])
    m, n = A.shape[-2:]
    if rcond is None:
        rcond = float(np.finfo(A.spec.dtype.to_real().numpy).eps) * max(m, n)
    solution, residuals, rank, values = _linalg_lstsq(A, right, rcond, driver)
    return Lstsq((solution.squeeze(-1) if vector else solution, residuals, rank, values.detach()))


def _lstsq_rule(ct, out, A, B, rcond, driver):
    """The solution is pinv(A) @ B; the residuals do not change with it, which is what makes it the best."""
    ct_A = ct_B = 0
    if ct[0] is not None:
        inverse = pinv(A)
        ct_A = pinv_rule(matmul(ct[0], B.mH), inverse, A)
        ct_B = matmul(inverse.mH, ct[0])
    if ct[1] is not None and out[1].numel():
        errors = 2 * (matmul(A, out[0]) - B) * ct[1].unsqueeze(-2)
        ct_A, ct_B = ct_A + matmul(errors, out[0].mH), ct_B - errors
    return ct_A, ct_B, None, None


@custom_vjp(joint=_lstsq_rule)
def _linalg_lstsq(A: Tensor, B: Tensor, rcond: float, driver: str) -> tuple[Tensor, ...]:
    solution, *others = _lstsq(A, B, rcond=rcond, driver=driver)
    return solution.narrow(-2, 0, A.shape[-1]), *others
