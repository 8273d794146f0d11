"""Plans of eigenvalues and singular values by kernels of a device that has them ("rotations" among its extras).

Each `..._plan` takes and returns what a plan of `device_plans.py` does. The functions return None for matrices with inf or NaN, and if Jacobi's
method does not end: then LAPACK computes on the host, which raises the error if there is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.indexed import bare
from ...families.map import COPY
from ..indexing.masking import where
from .device_plans import (
    by_columns,
    first_columns,
    geqrf,
    has_kernels,
    kernels,
    matrices_of,
    new,
    reflect,
)
from .lapack import columns_like, identities, real_like

# Matrices; a stack of so many keeps more of a GPU busy than one matrix, whose rounds wait for each other.
FEWEST = 8


def _fits(a: Spec) -> bool:
    """Whether to compute on the device: matrices that one group diagonalizes, and stacks of larger ones.

    A single large matrix takes hundreds of rounds of small kernels, so LAPACK on the host is expected to take less time.
    """
    if not has_kernels(a):
        return False
    fewest = min(a.shape[-2:])
    return fewest <= a.device.backend.extras["rotations"].side(a.dtype) or math.prod(a.shape[:-2]) >= FEWEST


# The exponents by which matrices are scaled at most, so that the power of two is a number.
_MOST_SCALED = {4: 120, 8: 1000}


def _scaled(a: Tensor) -> tuple[Tensor, Tensor]:
    """The matrices with norms of about 1, and the powers of two [..., 1] that results are multiplied by. Nothing is rounded."""
    exponent = _exponents(a.abs().amax((-2, -1)))
    scaled = a * _powers(-exponent, a)[..., None, None]
    lengths = scaled.abs().square().sum((-2, -1)).sqrt()
    rest = _exponents(lengths)
    return scaled * _powers(-rest, a)[..., None, None], (_powers(exponent, a) * _powers(rest, a)).unsqueeze(
        -1
    )


def _exponents(sizes: Tensor) -> Tensor:
    limit = _MOST_SCALED[sizes.spec.dtype.itemsize]
    return sizes.frexp()[1].clamp(-limit, limit)


def _powers(exponents: Tensor, a: Tensor) -> Tensor:
    """Return powers of two, of the real dtype of `a`."""
    return exponents.new_ones((), dtype=a.spec.dtype.to_real()).ldexp(exponents)


def _is_finite(a: Tensor) -> bool:
    return bool(a.isfinite().all().item())


def _reordered(columns: Tensor, order: Tensor) -> Tensor:
    """Return the columns of matrices in another order."""
    return columns.gather(-1, order.unsqueeze(-2).expand(columns.shape))


# ---- Eigenvalues ---------------------------------------------------------------------------------------------------------


def eigh_plan(a: Spec, UPLO: str) -> Callable | None:
    """Return the plan of (eigenvalues, eigenvectors)."""
    return functools.partial(_eigh, UPLO=UPLO, wanted=True) if _fits(a) else None


def eigvalsh_plan(a: Spec, UPLO: str) -> Callable | None:
    """Return the plan of the eigenvalues."""
    return functools.partial(_eigh, UPLO=UPLO, wanted=False) if _fits(a) else None


def _eigh(a: Tensor, UPLO: str, wanted: bool) -> Any:
    own = _hermitian(bare(a), UPLO)
    scaled, factor = _scaled(own)
    dense = by_columns(scaled)
    *batch, n, _ = a.spec.shape
    values = new(real_like(a.spec.shape[:-1], a.spec), a)
    vectors = identities(dense.spec) if wanted else None
    rotations, dtype = kernels("rotations", a), a.spec.dtype
    found = None if vectors is None else matrices_of(vectors)
    ended = rotations.diagonalize(matrices_of(dense), found, values._storage.ptr, math.prod(batch), n, dtype)
    if not ended or not _is_finite(own):
        return None
    if n > rotations.side(dtype):
        values = _real(dense.diagonal(0, -2, -1))
    values, order = values.sort(-1)
    values = (values * factor).contiguous()
    return values if vectors is None else (values, by_columns(_reordered(vectors, order)))


def _hermitian(a: Tensor, UPLO: str) -> Tensor:
    """Return Hermitian matrices, of which a triangle is given. The imaginary parts of the diagonal do not count."""
    half = a.tril(-1) if UPLO == "L" else a.triu(1)
    result = half + half.mH
    COPY.write(result.diagonal(0, -2, -1), _real(a.diagonal(0, -2, -1)))
    return result


def _real(a: Tensor) -> Tensor:
    return a.real if a.spec.dtype.is_complex else a


# ---- Singular values -----------------------------------------------------------------------------------------------------


def svd_plan(a: Spec, full_matrices: bool, infinite: bool) -> Callable | None:
    """Return the plan of (U, singular values, Vh). `infinite` is for the host's way."""
    return functools.partial(_svd, full_matrices=full_matrices) if _fits(a) else None


def svdvals_plan(a: Spec) -> Callable | None:
    """Return the plan of the singular values."""
    return _svdvals if _fits(a) else None


def _svdvals(a: Tensor) -> Tensor | None:
    found = _orthogonal(bare(a), wanted=False)
    return None if found is None else found.values


class _Orthogonal(NamedTuple):
    """What is known of tall matrices Q R: R.mH V = W, whose columns are orthogonal, from the longest one to the shortest."""

    reflections: tuple[Tensor, Tensor]
    values: Tensor
    W: Tensor
    V: Tensor | None


def _orthogonal(a: Tensor, wanted: bool) -> _Orthogonal | None:
    """`wanted`: V, too."""
    tall = a if a.spec.shape[-2] >= a.spec.shape[-1] else bare(a.mH)
    scaled, factor = _scaled(tall)
    reflections = geqrf(scaled)
    *batch, _, n = tall.spec.shape
    dense = by_columns(bare(reflections[0].narrow(-2, 0, n).triu().mH))
    vectors = identities(dense.spec) if wanted else None
    found = None if vectors is None else matrices_of(vectors)
    ended = kernels("rotations", a).orthogonalize(
        matrices_of(dense), found, math.prod(batch), n, a.spec.dtype
    )
    if not ended or not _is_finite(a):
        return None
    lengths = dense.abs().square().sum(-2).sqrt()
    values, order = lengths.sort(-1, descending=True)
    V = None if vectors is None else _reordered(vectors, order)
    return _Orthogonal(reflections, (values * factor).contiguous(), _reordered(dense, order), V)


def _svd(a: Tensor, full_matrices: bool) -> tuple[Tensor, ...] | None:
    found = _orthogonal(bare(a), wanted=True)
    if found is None:
        return None
    # The columns of W divided by their lengths. Reflections give columns beside those of length 0, too.
    vectors, factors = geqrf(found.W)
    signs = where(_real(vectors.diagonal(0, -2, -1)) < 0, -1, 1).unsqueeze(-2)
    short = first_columns(vectors, factors, columns_like(found.W.spec.shape, a.spec)) * signs
    *batch, m, n = a.spec.shape
    most, fewest = max(m, n), min(m, n)
    spec = columns_like((*batch, most, most if full_matrices else fewest), a.spec)
    long = identities(spec.like(device=a.spec.device))
    COPY.write(long.narrow(-2, 0, fewest).narrow(-1, 0, fewest), found.V)
    reflect(*found.reflections, long, is_adjoint=False)
    if m >= n:
        return long, found.values, by_columns(bare(short.mH))
    return by_columns(short), found.values, by_columns(bare(long.mH))
