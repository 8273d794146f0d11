"""Plans of least squares by kernels of a device: by QR factorizations ("gels"), else by singular values. See `device_plans.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ...core.dtype import int64
from ...core.iteration import broadcast_shapes
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty
from ...families.indexed import bare
from ...families.map import COPY, FILL
from ..indexing.masking import where
from .device_plans import geqrf, has_kernels, new, reflect, solve_triangles
from .device_spectra import svd_plan
from .lapack import columns_like, real_like
from .matmul import matmul


def least_squares_plan(a: Spec, b: Spec, rcond: float, driver: str) -> Callable | None:
    """Return the plan of (solution with what is below it, residuals, ranks, singular values), each empty if the driver has none.

    The plan returns None for matrices that only the host's way can tell apart, for its errors: those with NaN and infinities, and for "gels"
    those without full rank.
    """
    if not has_kernels(a, b):
        return None
    if driver == "gels":
        return _by_reflections
    svd = svd_plan(a, False, False)
    return (
        None if svd is None else functools.partial(_by_singular_values, svd=svd, rcond=rcond, driver=driver)
    )


def _right_sides(a: Tensor, b: Tensor) -> Tensor:
    """Return dense matrices with the right sides in the first of max(m, n) rows, and zeros below."""
    batch = broadcast_shapes("linalg.lstsq", a.spec.shape[:-2], b.spec.shape[:-2])
    m, k = b.spec.shape[-2:]
    result = FILL.write(new(columns_like((*batch, max(a.spec.shape[-2:]), k), b.spec), b), 0)
    COPY.write(result.narrow(-2, 0, m), b.expand((*batch, m, k)))
    return result


def _by_reflections(a: Tensor, b: Tensor) -> tuple[Tensor, ...] | None:
    a, b = bare(a), bare(b)
    m, n = a.spec.shape[-2:]
    result = _right_sides(a, b)
    a = a.expand((*result.spec.shape[:-2], m, n))
    vectors, factors = geqrf(a if m >= n else bare(a.mH))
    upper, solved = (each.narrow(-2, 0, min(m, n)) for each in (vectors, result))
    pivots = upper.diagonal(0, -2, -1)
    # NaN and infinities of `a` are in its factors, too.
    if not bool((pivots != 0).all() & pivots.isfinite().all() & b.isfinite().all()):
        return None
    if m >= n:
        reflect(vectors, factors, result, is_adjoint=True)
        solve_triangles(upper, solved, True)
    else:  # the shortest of all solutions is Q y with R.mH y = b
        solve_triangles(upper.mT, solved, False, conjugated=True)
        reflect(vectors, factors, result, is_adjoint=False)
    return result, _residuals(result, n) if m > n else _nothing(a), _nothing(a, int64), _nothing(a)


def _by_singular_values(
    a: Tensor, b: Tensor, svd: Callable, rcond: float, driver: str
) -> tuple[Tensor, ...] | None:
    a, b = bare(a), bare(b)
    m, n = a.spec.shape[-2:]
    if not bool(b.isfinite().all()) or (found := svd(a)) is None:
        return None
    U, values, Vh = found
    counts = values > rcond * values.narrow(-1, 0, 1)
    inverse = where(counts, 1 / values, 0)
    result = _right_sides(a, b)
    of_vectors = matmul(U.mH, b)
    COPY.write(result.narrow(-2, 0, n), matmul(Vh.mH, of_vectors * inverse.unsqueeze(-1)))
    ranks = counts.sum(-1)
    residuals, singular = _nothing(a), _nothing(a)
    if driver != "gelsy":
        singular = values
        if m > n and bool((ranks == n).all()):
            errors = b - matmul(a, result.narrow(-2, 0, n))
            residuals = errors.abs().square().sum(-2)
    return result, residuals, _of_batch(ranks, result), _of_batch(singular, result, 1)


def _residuals(result: Tensor, n: int) -> Tensor:
    """The sum of the squares of what is left below the solutions."""
    return result.narrow(-2, n, result.spec.shape[-2] - n).abs().square().sum(-2)


def _nothing(a: Tensor, dtype=None) -> Tensor:
    spec = real_like((0,), a.spec) if dtype is None else contiguous_spec((0,), dtype)
    return empty(spec.like(device=a.spec.device))


def _of_batch(values: Tensor, result: Tensor, dims: int = 0) -> Tensor:
    """The values of each matrix, for each system."""
    if not values.spec.numel:
        return values
    sizes = (*result.spec.shape[:-2], *values.spec.shape[values.dim() - dims :])
    return values.expand(sizes).contiguous()
