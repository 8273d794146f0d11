"""How many arithmetic operations an operation takes that NumPy, SciPy, LAPACK or a kernel without an expression computes.

The counts of factorizations and solvers are those of LAPACK Working Note 41 (Blackford and Dongarra, "Installation guide for LAPACK",
appendix C), additions and multiplications together. Complex numbers count 4 times as much, as in PyTorch's profiler. Transforms count
5 n log2(n), FFTW's convention for n complex numbers, and half of it if one side is real.

Decompositions that iterate until they converge (eigenvalues, singular values) take as many operations as the numbers demand. Their counts are
estimates: the terms of highest order in Golub and Van Loan, "Matrix Computations", 4th edition, for the usual number of iterations of the QR
algorithm, whatever algorithm runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..core.tensor import Tensor


def flop_of(name: str, result: Any, args: tuple, static: dict[str, Any]) -> int | None:
    """Count the operations of one call of the op `name`; None if no formula is known."""
    if name in _NO_ARITHMETIC:
        return 0
    formula = _FORMULAS.get(name)
    return None if formula is None else round(formula(result, *args, **static))


# Operations that move, compare, or count.
_NO_ARITHMETIC = frozenset(
    "sort topk kthvalue median nanmedian mode unique unique_consecutive isin searchsorted bucketize bincount histc hashed tril_indices "
    "triu_indices permutations identities".split()
)


# ---- Linear algebra: of one m x n matrix, with r right-hand sides ------------------------------------------------------


def _lu(m: int, n: int) -> Fraction:
    m, n = max(m, n), min(m, n)
    return Fraction(6 * m * n * n - 2 * n**3 - 3 * n * n + 5 * n, 6)


def _cholesky(n: int) -> Fraction:
    return Fraction(2 * n**3 + 3 * n * n + n, 6)


def _qr(m: int, n: int) -> Fraction:
    if m >= n:
        return Fraction(6 * m * n * n - 2 * n**3 + 3 * m * n + 3 * n * n + 14 * n, 3)
    return Fraction(6 * n * m * m - 2 * m**3 + 9 * n * m - 3 * m * m + 14 * m, 3)


def _reflections_to_columns(m: int, n: int, k: int) -> Fraction:
    """LAPACK's orgqr: k reflections as n columns of size m."""
    return Fraction(
        12 * m * n * k - 6 * (m + n) * k * k + 4 * k**3 + 9 * n * k - 3 * m * k - 3 * k * k - 4 * k, 3
    )


def _inverse(n: int) -> Fraction:
    """From the factors of LU."""
    return Fraction(4 * n**3 - 3 * n * n + 5 * n, 3)


def _substitution(n: int, r: int) -> int:
    """With both factors of LU or of Cholesky; one triangle takes half of it."""
    return (2 * n * n - n) * r


def _of_matrices(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The formula of the last two sizes of the first argument, for a batch of them."""

    def count(result: Any, a: Tensor, *others: Any, **static: Any) -> Any:
        return _weight(a) * math.prod(a.shape[:-2]) * formula(*a.shape[-2:])

    return count


def _weight(tensor: Tensor) -> int:
    return 4 if tensor.spec.dtype.is_complex else 1


def _solving(formula: Callable[[int, int], Any]) -> Callable[..., Any]:
    """The formula of the size of square matrices and the number of right-hand sides, which the first result has as columns."""

    def count(result: Any, *args: Any, **static: Any) -> Any:
        x = result[0] if isinstance(result, tuple) else result
        n, r = (*x.shape, 1)[:2] if x.dim() < 2 else x.shape[-2:]
        return _weight(x) * math.prod(x.shape[:-2]) * formula(n, r)

    return count


def _triangular(result: Tensor, a: Tensor, b: Tensor, *, left: bool = True, **static: Any) -> int:
    n = a.shape[-1]
    return _weight(result) * result.numel() // n * n * n if n else 0


def _full_qr(result: Any, a: Tensor, *, mode: Any) -> Fraction:
    m, n = a.shape[-2:]
    own = _qr(m, n)
    if mode != "r":
        own += _reflections_to_columns(m, m if mode == "complete" else min(m, n), min(m, n))
    return _weight(a) * math.prod(a.shape[:-2]) * own


def _householder(result: Any, a: Tensor, tau: Tensor) -> Fraction:
    m, n = a.shape[-2:]
    return _weight(a) * math.prod(a.shape[:-2]) * _reflections_to_columns(m, n, tau.shape[-1])


def _times_reflections(
    result: Tensor, a: Tensor, tau: Tensor, c: Tensor, *, left: bool, transpose: bool
) -> int:
    m, n = c.shape[-2:] if left else reversed(c.shape[-2:])
    k = tau.shape[-1]
    return _weight(c) * math.prod(c.shape[:-2]) * (4 * n * m * k - 2 * n * k * k + 3 * n * k)


# ---- Estimates: decompositions that iterate ------------------------------------------------------------------------------


def _symmetric_eigenvalues(n: int, vectors: bool) -> Fraction:
    """Golub and Van Loan, section 8.3: algorithm 8.3.3, the symmetric QR algorithm."""
    return Fraction(9 * n**3) if vectors else Fraction(4 * n**3, 3)


def _eigenvalues(n: int, vectors: bool) -> int:
    """Golub and Van Loan, section 7.5: algorithm 7.5.2, Hessenberg form and the QR algorithm. Vectors: Schur's form with its basis."""
    return 25 * n**3 if vectors else 10 * n**3


def _singular_values(m: int, n: int) -> Fraction:
    """Golub and Van Loan, figure 8.6.1: the algorithm of Golub and Reinsch, or QR first, whichever takes less."""
    m, n = max(m, n), min(m, n)
    return min(4 * m * n * n - Fraction(4 * n**3, 3), Fraction(2 * m * n * n + 2 * n**3))


def _singular_vectors(m: int, n: int, full: bool) -> int:
    """As `_singular_values`, with both matrices of singular vectors; `full`: the larger one is square."""
    m, n = max(m, n), min(m, n)
    if full and m > n:
        return min(4 * m * m * n + 8 * m * n * n + 9 * n**3, 4 * m * m * n + 22 * n**3)
    return min(14 * m * n * n + 8 * n**3, 6 * m * n * n + 20 * n**3)


def _svd(result: Any, a: Tensor, *, full_matrices: bool, **static: Any) -> int:
    return _weight(a) * math.prod(a.shape[:-2]) * _singular_vectors(a.shape[-2], a.shape[-1], full_matrices)


def _least_squares(result: Any, a: Tensor, b: Tensor, *, driver: str, **static: Any) -> Fraction:
    """By a factorization QR, or for the drivers gelsd and gelss by singular values, and products with the right-hand sides."""
    (m, n), r = a.shape[-2:], b.shape[-1]
    large, small = max(m, n), min(m, n)
    if driver in ("gels", "gelsy"):
        own = _qr(large, small) + r * (4 * large * small - 2 * small**2 + 3 * small) + r * small**2
    else:  # figure 8.6.1 without the left vectors, to which the right-hand sides are transformed instead
        own = Fraction(min(4 * large * small**2 + 8 * small**3, 2 * large * small**2 + 11 * small**3))
        own += r * (4 * large * small + 2 * small**2)
    return _weight(a) * math.prod(a.shape[:-2]) * own


# ---- Transforms and interpolation --------------------------------------------------------------------------------------


def _transform(full: Any, sizes: Any, share: float) -> float:
    n = math.prod(sizes)
    return share * math.prod(full) * math.log2(n) if n > 1 else 0


def _complex_transform(
    result: Tensor, input: Tensor, dims: tuple[int, ...], *others: Any, **static: Any
) -> float:
    return _transform(result.shape, [result.shape[dim] for dim in dims], 5)


def _of_real(result: Tensor, input: Tensor, dims: tuple[int, ...], *others: Any, **static: Any) -> float:
    return _transform(input.shape, [input.shape[dim] for dim in dims], 2.5)


def _to_real(result: Tensor, input: Tensor, dim: int, *others: Any, **static: Any) -> float:
    return _transform(result.shape, [result.shape[dim]], 2.5)


def _resample(result: Tensor, input: Tensor, dim: int, table: Any) -> int:
    size = result.shape[dim]
    return 2 * int(table.bounds[:, 1].sum()) * (result.numel() // size) if size else 0


def _blended(result: Tensor, flat: Tensor, positions: Tensor, *others: Any) -> int:
    return 2 * positions.shape[1] * result.numel()


_FORMULAS: dict[str, Callable[..., Any]] = {
    "linalg_cholesky_ex": _of_matrices(lambda m, n: _cholesky(n)),
    "linalg_lu_factor_ex": _of_matrices(_lu),
    "linalg_det": _of_matrices(lambda m, n: _lu(n, n) + n),
    "linalg_slogdet": _of_matrices(lambda m, n: _lu(n, n) + 2 * n),
    "linalg_inv_ex": _of_matrices(lambda m, n: _lu(n, n) + _inverse(n)),
    "ldl_factor": _of_matrices(lambda m, n: _cholesky(n)),
    "potri": _of_matrices(lambda m, n: Fraction(4 * n**3 + 3 * n * n + 5 * n, 6)),
    "geqrf": _of_matrices(_qr),
    "linalg_qr": _full_qr,
    "linalg_householder_product": _householder,
    "ormqr": _times_reflections,
    "solve": _solving(lambda n, r: _lu(n, n) + _substitution(n, r)),
    "linalg_solve_triangular": _triangular,
    "cholesky_solve": _solving(_substitution),
    "lu_solve": _solving(_substitution),
    "ldl_solve": _solving(_substitution),
    "linalg_eigh": _of_matrices(lambda m, n: _symmetric_eigenvalues(n, vectors=True)),
    "eigvalsh": _of_matrices(lambda m, n: _symmetric_eigenvalues(n, vectors=False)),
    "linalg_eig": _of_matrices(lambda m, n: _eigenvalues(n, vectors=True)),
    "eigvals": _of_matrices(lambda m, n: _eigenvalues(n, vectors=False)),
    "linalg_svd": _svd,
    "svdvals": _of_matrices(_singular_values),
    "lstsq": _least_squares,
    "fft_c2c": _complex_transform,
    "fft_r2c": _of_real,
    "fft_c2r": _to_real,
    "resample": _resample,
    "bilinear": lambda result, *args: 2 * 4 * result.numel(),
    "blended": _blended,
}
