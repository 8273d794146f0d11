"""QR: of a tall matrix, each process factorizes its rows, and all of them the stack of the small triangles; of others, a block of columns at a
time is factorized so, and the rest of the matrix is reflected.

Sources: Demmel, Grigori, Hoemmen, Langou 2012, "Communication-optimal parallel and sequential QR and LU factorizations" (TSQR);
Ballard, Demmel, Grigori, Jacquelin, Knight, Nguyen, Solomonik 2014, "Reconstructing Householder vectors from tall-skinny QR".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ....ops.linalg import equations, factorizations
from ... import _collectives
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .rows import Rows, cut_rows, everywhere, joined, part_of, rows_of

WIDTH = 64  # columns of a block


def tall_qr(part: Tensor, rows: Rows, start: int = 0) -> tuple[Tensor, Tensor]:
    """The rows of Q that belong to this process, and R, of the rows from `start` on, of which this process has `part`."""
    count, n = part.spec.shape
    q, r = factorizations.linalg_qr(part) if count else (part[:, :0], part)
    kept = [min(max(stop - max(first, start), 0), n) for first, stop in rows.bounds]  # rows of each triangle
    rank = rows.group.rank()
    triangle = part.new_zeros((n, n))
    triangle[: kept[rank]] = r
    stack = [part.new_empty((n, n)) for _ in kept]
    _collectives.all_gather(stack, triangle, group=rows.group)
    triangles = tuple([each[:size] for each, size in zip(stack, kept, strict=True)])
    q_of_stack, r = factorizations.linalg_qr(cat(triangles))
    before = sum(kept[:rank])
    return q @ q_of_stack[before : before + kept[rank]], r


def is_tall(count: int, rows: Rows) -> bool:
    """Whether the stack of triangles of a matrix with `count` columns is as small as a block, or as the rows of a process."""
    return count <= max(WIDTH, rows.height // rows.group.size() ** 2)


class _Reflection(NamedTuple):
    """The unitary matrix I - Y @ T @ Y.mH."""

    rows: slice  # of this process, to which Y belongs
    Y: Tensor  # those rows of Y
    T: Tensor

    def apply(self, part: Tensor, rows: Rows, adjoint: bool) -> None:
        """Multiply the matrix with these rows by the reflection, from the left, or by its adjoint."""
        sums = self.Y.mH @ part[self.rows]
        _collectives.all_reduce(sums, group=rows.group)
        part[self.rows] -= self.Y @ ((self.T.mH if adjoint else self.T) @ sums)


def _triangles_of(top: Tensor) -> tuple[Tensor, Tensor]:
    """L and U, packed, of `top - diag(signs)`, and these numbers of size 1, which keep the pivots at 1 or above."""
    packed, signs = top.clone(), top.new_empty(top.spec.shape[:1])
    for k in range(signs.spec.shape[0]):
        pivot = packed[k, k].item()
        signs[k] = -pivot / abs(pivot) if pivot else -1
        packed[k, k] -= signs[k]
        packed[k + 1 :, k] /= packed[k, k]
        packed[k + 1 :, k + 1 :] -= packed[k + 1 :, k, None] * packed[k, k + 1 :]
    return packed, signs


def _reflection(part: Tensor, rows: Rows, owner: int, first: int, stop: int) -> _Reflection:
    """Overwrite the columns from `first` to `stop` by those of R, and give the reflection that does so."""
    below, width = rows.own(first), stop - first
    q, r = tall_qr(part[below, first:stop].contiguous(), rows, first)

    def triangles() -> Tensor:
        packed, signs = _triangles_of(q[:width])
        return cat((packed, signs.unsqueeze(0)))

    found = rows.from_owner(owner, triangles, (width + 1, width), part)
    packed, signs = found[:-1], found[-1]
    upper = packed.triu()
    vectors = equations.solve_triangular(upper, q, upper=True, left=False)
    part[below, first:stop] = 0
    if rows.group.rank() == owner:
        vectors[:width] = packed.tril(-1)
        vectors[:width].diagonal().fill_(1)
        part[rows.own(first, stop), first:stop] = signs.unsqueeze(1) * r
    # T = -U @ diag(signs).mH @ inv(L).mH
    turned = equations.solve_triangular(packed, (upper * signs.conj()).mH, upper=False, unitriangular=True)
    return _Reflection(below, vectors, -turned.mH)


def blocked_qr(part: Tensor, rows: Rows) -> tuple[Tensor, Tensor, Rows]:
    """The rows of Q and R that belong to this process, and the cut of those of R. Overwrites `part`."""
    size = min(rows.height, part.spec.shape[1])
    reflections = []
    for owner, first, end in rows.blocks(WIDTH):
        stop = min(end, size)
        if first < stop:
            reflections.append(_reflection(part, rows, owner, first, stop))
            if stop < part.spec.shape[1]:
                rest = part[:, stop:].contiguous()
                reflections[-1].apply(rest, rows, adjoint=True)
                part[:, stop:] = rest
    q = part.new_zeros((part.spec.shape[0], size))
    q.diagonal(rows.start).fill_(1)
    for each in reversed(reflections):
        each.apply(q, rows, adjoint=False)
    own = cut_rows(rows.mesh, rows.mesh_dim, size)
    return q, rows.taken(part, range(size), own), own


@rule_for(factorizations._linalg_qr)
def _qr(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,), mode = tensors, static["mode"]
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None or mode == "complete" and m > n:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        if m >= n and is_tall(n, rows):
            q, r = tall_qr(part_of(a, rows), rows)
            right = everywhere(r, rows)
        else:
            q, r, own = blocked_qr(part_of(a, rows), rows)
            right = joined(r, own.height, own)
    found = (right,) if mode == "r" else (joined(q, m, rows), right)
    return recorded(op, found, tensors, (mode,))
