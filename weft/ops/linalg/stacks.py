"""Factorizations and substitutions of many small matrices, where each step is one operation of NumPy on the whole stack.

A call of LAPACK costs 0.1 to 0.2 us for a 2x2 matrix, and through SciPy 3 us. Here the dims of the stack come last,
[rows, columns, *stack], so that NumPy's inner loops run over the matrices. The result of a matrix does not depend on the others.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.spec import Spec


def beats_numpy(*stacks: np.ndarray | Spec) -> bool:
    """Whether this is faster than NumPy's loop over the matrices (measured)."""
    return _are_many(stacks, 200, 8)


def beats_scipy(*stacks: np.ndarray | Spec) -> bool:
    """Whether this is faster than a call of SciPy for each matrix (measured)."""
    return _are_many(stacks, 16, 16)


def beats_lu(*stacks: np.ndarray | Spec) -> bool:
    """Whether this is faster than LAPACK's LU without wrappers: 1000 of 2x2 0.1 ms instead of 0.2, of 4x4 0.30 instead of 0.22."""
    return _are_many(stacks, 400, 4)


def beats_trsm(*stacks: np.ndarray | Spec) -> bool:
    """Whether this is faster than BLAS's substitution without wrappers: 1000 of 4x4 0.10 ms instead of 0.18, of 8x8 0.8
    instead of 0.5 (AMD Zen 4).
    """
    return _are_many(stacks, 100, 6)


def _are_many(stacks: tuple[np.ndarray | Spec, ...], matrices_per_row: int, largest: int) -> bool:
    most = max(math.prod(stack.shape[:-2]) for stack in stacks)
    size = max(max(stack.shape[-2:]) for stack in stacks)
    return (
        size <= largest
        and most >= matrices_per_row * size
        and all(math.prod(stack.shape) for stack in stacks)
    )


def inside_out(a: np.ndarray, stack: tuple[int, ...]) -> np.ndarray:
    """A copy of [*stack, rows, columns] as [rows, columns, *stack]; the dims of `a` broadcast."""
    a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    return np.moveaxis(a, (-2, -1), (0, 1)).copy()


def outside_in(a: np.ndarray) -> np.ndarray:
    """Return the inverse of `inside_out`: a view."""
    return np.moveaxis(a, (0, 1), (-2, -1))


def lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factorize [rows, columns, *stack] in place, with row swaps, as LAPACK's getrf does.

    Returns the row that each row was swapped with, from 0, [min(rows, columns), *stack]; and LAPACK's infos.
    """
    height, width, *stack = a.shape
    a = a.reshape(height, width, -1)
    pivots = np.empty((min(height, width), a.shape[-1]), np.int32)
    infos = np.zeros(a.shape[-1], np.int32)
    for k in range(len(pivots)):
        pivots[k] = k + _magnitude(a[k:, k]).argmax(0)
        _swap(a, k, pivots[k])
        pivot, below = a[k, k], a[k + 1 :, k]
        singular = pivot == 0
        if singular.any():
            infos[singular & (infos == 0)] = k + 1
            pivot = np.where(singular, 1, pivot)  # the elements below are 0, too
        below /= pivot
        if k + 1 < width:
            a[k + 1 :, k + 1 :] -= below[:, None] * a[k, k + 1 :]
    return pivots.reshape(-1, *stack), infos.reshape(stack)


def _magnitude(a: np.ndarray) -> np.ndarray:
    """The magnitude by which LAPACK chooses pivots."""
    return np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)


def _swap(a: np.ndarray, row: int, others: np.ndarray) -> None:
    """Swap a row of each matrix of [rows, columns, count] with one below.

    The swap has no branch and no gather. It adds (xor) the difference of the two rows to both of them, or zero if they stay.
    """
    bits = a.view(f"i{min(a.itemsize, 8)}").reshape(*a.shape, -1)
    for other in range(row + 1, len(a)):
        chosen = -(others == other).astype(bits.dtype)
        difference = (bits[row] ^ bits[other]) & chosen[:, None]
        bits[row] ^= difference
        bits[other] ^= difference


def permute(b: np.ndarray, pivots: np.ndarray, undo: bool = False) -> None:
    """Do the row swaps of a factorization to [rows, columns, *stack], in place."""
    flat = b.reshape(*b.shape[:2], -1)
    for k in reversed(range(len(pivots))) if undo else range(len(pivots)):
        _swap(flat, k, np.broadcast_to(pivots[k], b.shape[2:]).reshape(-1))


def substitute(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool = False) -> None:
    """Solve a @ x = b in place of b [n, columns, *stack]; of a [n, n, *stack] one triangle is read."""
    n = len(a)
    for k in reversed(range(n)) if upper else range(n):
        if not unitriangular:
            b[k] /= a[k, k]
        others = slice(0, k) if upper else slice(k + 1, n)
        b[others] -= a[others, k, None] * b[k]


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Replace b by the solution of a @ x = b, and a by its factors; returns LAPACK's infos."""
    pivots, infos = lu(a)
    permute(b, pivots)
    substitute(a, b, upper=False, unitriangular=True)
    substitute(a, b, upper=True)
    return infos


def triangle(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The diagonals [n, *stack] of the upper factors of [n, n, *stack], and -1 where an odd number of rows was swapped."""
    pivots, _ = lu(a)
    own = np.arange(len(pivots)).reshape(-1, *[1] * (pivots.ndim - 1))
    return np.einsum("kk...->k...", a), 1 - 2 * ((pivots != own).sum(0, dtype=np.int32) % 2)


def cholesky(a: np.ndarray) -> None:
    """Replace [n, n, *stack] by its lower factors; NaN on the diagonal where there is none."""
    n = len(a)
    for k in range(n):
        a[k, k] = np.sqrt(a[k, k].real)
        a[k, k + 1 :] = 0
        a[k + 1 :, k] /= a[k, k]
        for j in range(k + 1, n):
            a[j:, j] -= a[j:, k] * a[j, k].conj()
