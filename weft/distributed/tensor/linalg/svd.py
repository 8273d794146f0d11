"""Singular values: those of R, by a QR factorization. Where no process has all of R, its rows are rotated until they are orthogonal.

Source: Drmač and Veselić 2008, "New fast and accurate Jacobi SVD algorithm" (rotations of the rows of R).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ....ops.linalg import eigen
from ....ops.linalg.lapack import LinAlgError
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .jacobi import orthogonalize
from .qr import blocked_qr, is_tall, tall_qr
from .rows import Rows, everywhere, joined, part_of, rows_of


class _Factors(NamedTuple):
    """The rows of this process of the factors of a square matrix."""

    left: Tensor  # of U.mH
    values: Tensor
    right: Tensor  # of Vh


def _square_svd(part: Tensor, rows: Rows) -> _Factors:
    count = rows.height
    if not rows.agree(bool(part.isfinite().all())):
        raise LinAlgError(eigen._NOT_CONVERGED.format("", "contained non-finite values."))
    identity = part.new_zeros(part.spec.shape)
    identity.diagonal(rows.start).fill_(1)
    failure = LinAlgError(
        eigen._NOT_CONVERGED.format("", "is ill-conditioned or has too many repeated singular values.")
    )
    turned = orthogonalize(cat((part, identity), 1), count, rows, failure)
    lengths = turned[:, :count].abs().square().sum(1).sqrt()
    order = rows.collected(lengths, 0).argsort(descending=True).tolist()
    turned, values = rows.taken(turned, order, rows), rows.taken(lengths, order, rows)
    # Rows of small length are only roughly orthogonal; a QR factorization of the adjoint makes them so.
    right, triangle, _ = blocked_qr(part_of(joined(turned[:, :count], count, rows).mH, rows), rows)
    phases = rows.collected(triangle.diagonal(rows.start).sgn(), 0)
    phases = phases.masked_fill(phases == 0, 1)
    return _Factors(turned[:, count:], values, part_of(joined(right * phases, count, rows).mH, rows))


@rule_for(eigen._linalg_svd)
def _svd(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,) = tensors
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None or static["full_matrices"] and m != n:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        if m < n:
            right, values, left = op(a.mH, **static)
            found = left.mH, values, right.mH
        elif is_tall(n, rows):
            q, r = tall_qr(part_of(a, rows), rows)
            left, values, right = op(r, full_matrices=False, infinite=static["infinite"])
            found = joined(q @ left, m, rows), everywhere(values, rows), everywhere(right, rows)
        else:
            q, r, own = blocked_qr(part_of(a, rows), rows)
            left, values, right = _square_svd(r, own)
            left = own.product(q, part_of(joined(left, n, own).mH, own))
            found = joined(left, m, rows), joined(values, n, own), joined(right, n, own)
    return recorded(op, found, tensors, (static["full_matrices"], static["infinite"]))


@rule_for(eigen._svdvals)
def _svdvals(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,) = tensors
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        if m < n:
            found = op(a.mH)
        elif is_tall(n, rows):
            found = everywhere(op(tall_qr(part_of(a, rows), rows)[1]), rows)
        else:
            _, r, own = blocked_qr(part_of(a, rows), rows)
            found = joined(_square_svd(r, own).values, n, own)
    return recorded(op, found, tensors)
