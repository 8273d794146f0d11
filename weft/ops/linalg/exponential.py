"""The matrix exponential."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.derivative import differentiate
from ...core.dtype import complex128, float64
from ...core.public import public
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor
from ...families.indexed import bare
from ..assembly.joining import cat
from ..indexing.masking import where
from .device_plans import has_kernels, solve
from .lapack import check_floating, check_square, eye_like, matrix_op, rows
from .matmul import matmul

# Degrees of the diagonal Pade approximant, and the 1-norms up to which they are exact in float64 and float32. Both compute in
# float64, because in float32 the squarings leave more of an error than PyTorch's.
# Source: Higham 2005, "The scaling and squaring method for the matrix exponential revisited".
_PADE = {8: (13, 5.371920351148152), 4: (7, 3.925724783138660)}  # by the size of a real number in bytes


@matrix_op
def _linalg_matrix_exp(a: np.ndarray) -> Tensor:
    if not a.size or a.shape[-1] == 1:
        return rows(np.exp(a))
    degree, limit = _PADE[a.real.itemsize]
    wide = a.astype(np.result_type(a.dtype, np.float64))
    sizes = np.abs(wide).sum(-2).max(-1)
    # 2 ** halvings >= sizes / limit
    _, halvings = np.frexp(np.where(np.isfinite(sizes), sizes / limit, 0))
    halvings = np.maximum(halvings, 0)
    scaled = np.ldexp(1.0, -halvings)[..., None, None] * wide
    result = _solved(*_pade(scaled, np.eye(scaled.shape[-1], dtype=scaled.dtype), degree))
    for squaring in range(int(halvings.max())):
        again = halvings > squaring  # square every matrix as often as it was halved
        if again.all():
            result = result @ result
        else:
            result[again] = result[again] @ result[again]
    return rows(result.astype(a.dtype))


@_linalg_matrix_exp.spec_rule
def _linalg_matrix_exp_specs(a: Spec) -> Spec:
    return contiguous_spec(a.shape, a.dtype)


def _pade(a: Any, identity: Any, degree: int) -> tuple[Any, Any]:
    """Compute p(-a) and p(a) of arrays or tensors, the coefficients of p chosen so that p(a) / p(-a) agrees with exp up to the power 2 * degree."""
    coefficients = [
        math.comb(degree, k) * math.factorial(2 * degree - k) / math.factorial(2 * degree)
        for k in range(degree + 1)
    ]
    square = a @ a
    power, even, odd = square, coefficients[0] * identity, coefficients[1] * identity
    for k in range(2, degree, 2):
        even = even + coefficients[k] * power
        odd = odd + coefficients[k + 1] * power
        if k + 2 < degree:
            power = power @ square
    odd = a @ odd
    return even - odd, even + odd


def _solved(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.solve(below, above)
    except np.linalg.LinAlgError:  # only of NaN and inf
        return np.full_like(above, np.nan)


def _plan(a: Spec) -> Callable | None:
    """The same by kernels of a device that has those of `device_plans.py`. The host waits once, for the number of squarings."""
    return _by_kernels if has_kernels(a) else None


def _by_kernels(a: Tensor) -> Tensor:
    own, dtype = bare(a), a.spec.dtype
    if a.spec.shape[-1] == 1:
        return own.exp()
    degree, limit = _PADE[dtype.to_real().itemsize]
    wide = own.to(complex128 if dtype.is_complex else float64)
    sizes = wide.abs().sum(-2).amax(-1)
    finite = sizes.isfinite()
    _, halvings = where(finite, sizes / limit, 0.0).frexp()
    halvings = halvings.clamp(min=0)[..., None, None]
    scaled = wide * sizes.new_ones(()).ldexp(-halvings)
    result, _ = solve(*_pade(scaled, eye_like(scaled), degree))
    for squaring in range(int(halvings.amax().item())):
        result = where(halvings > squaring, matmul(result, result), result)
    # As on the host, where the powers of infinities are NaN.
    return where(finite[..., None, None], result, math.nan).to(dtype).contiguous()


_linalg_matrix_exp.on_device(_plan)


def _matrix_exp_rule(ct, out, a):
    """The exponential of a block matrix holds a derivative: exp([[A, E], [0, A]]) = [[exp(A), dexp(A)(E)], [0, exp(A)]].

    Source: Najfeld and Havel 1995, "Derivatives of the matrix exponential and their computation".
    """
    adjoint, n = a.mH, a.shape[-1]
    upper, lower = cat((adjoint, ct), -1), cat((adjoint.new_zeros(a.shape), adjoint), -1)
    return _linalg_matrix_exp(cat((upper, lower), -2))[..., :n, n:]


differentiate(_linalg_matrix_exp, _matrix_exp_rule)


@public("function method", "linalg.matrix_exp", autocast="lower")
def matrix_exp(input: Tensor) -> Tensor:
    """Return the matrix exponentials I + A + A @ A / 2 + ...: [..., n, n] -> [..., n, n]."""
    check_square(input, "linalg.matrix_exp")
    check_floating(input, "linalg.matrix_exp")
    dtype = input.spec.dtype
    narrow = dtype.name in ("float16", "bfloat16")
    return _linalg_matrix_exp(input.float()).to(dtype) if narrow else _linalg_matrix_exp(input)
