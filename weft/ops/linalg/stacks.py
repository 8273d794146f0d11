"""Factorizations and substitutions of many small matrices at once: each step is one operation on the whole stack.

A call of LAPACK costs a microsecond, however small the matrix is. Here the matrices lie with the dims of the stack last,
[rows, columns, *stack], so that NumPy's inner loops run over the matrices, and no result depends on its neighbours.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.spec import Spec


def beats_numpy(*stacks: np.ndarray | Spec) -> bool:
    """Whether there are so many matrices, so small, that this is faster than NumPy's loop over them; measured."""
    return _are_many(stacks, 200, 8)


def beats_scipy(*stacks: np.ndarray | Spec) -> bool:
    """Whether this is faster than a call from Python for each matrix; measured."""
    return _are_many(stacks, 16, 16)


def _are_many(stacks: tuple[np.ndarray | Spec, ...], matrices_per_row: int, largest: int) -> bool:
    most = max(math.prod(each.shape[:-2]) for each in stacks)
    size = max(max(each.shape[-2:]) for each in stacks)
    return (
        size <= largest and most >= matrices_per_row * size and all(math.prod(each.shape) for each in stacks)
    )


def inside_out(a: np.ndarray, stack: tuple[int, ...]) -> np.ndarray:
    """A copy of [*stack, rows, columns] as [rows, columns, *stack]; the dims of `a` broadcast."""
    a = np.broadcast_to(a, (*stack, *a.shape[-2:]))
    return np.moveaxis(a, (-2, -1), (0, 1)).copy()


def outside_in(a: np.ndarray) -> np.ndarray:
    """The inverse of `inside_out`: a view."""
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
            pivot = np.where(singular, 1, pivot)  # what is below is 0 too
        below /= pivot
        if k + 1 < width:
            a[k + 1 :, k + 1 :] -= below[:, None] * a[k, k + 1 :]
    return pivots.reshape(-1, *stack), infos.reshape(stack)


def _magnitude(a: np.ndarray) -> np.ndarray:
    """What LAPACK compares pivots by."""
    return np.abs(a.real) + np.abs(a.imag) if a.dtype.kind == "c" else np.abs(a)


def _swap(a: np.ndarray, row: int, others: np.ndarray) -> None:
    """Swap a row of each matrix of [rows, columns, count] with one below.

    Without a branch or a gather: where the rows' turn has come, their difference in bits is added to both.
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
        rest = slice(0, k) if upper else slice(k + 1, n)
        b[rest] -= a[rest, k, None] * b[k]


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
