"""Eigenvalues of Hermitian matrices: a multiple of the identity makes the matrix positive-definite, and its rows are rotated until they are orthogonal."""

from __future__ import annotations

from typing import Any

from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.creation.ranges import arange
from ....ops.linalg import eigen
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .jacobi import orthogonalize
from .qr import WIDTH
from .rows import Rows, joined, part_of, rows_of

STEPS = 10  # of the power method


def _rows_of(a: Any) -> Rows | None:
    """How the rows of a matrix are cut; None if it is so small that all processes may have it."""
    rows = rows_of(a)
    return None if rows is None or rows.height <= WIDTH else rows


def _hermitian(a: Any, UPLO: str, rows: Rows) -> Tensor:  # noqa: N803 (PyTorch's name)
    """The rows of the Hermitian matrix whose triangle is that of `a`."""
    beneath = part_of(a if UPLO == "L" else a.mH, rows).tril_(rows.start)
    diagonal = beneath.diagonal(rows.start)
    if beneath.spec.dtype.is_complex:
        diagonal.copy_(diagonal.real.clone())
    above = part_of(joined(beneath, rows.height, rows).mH, rows)
    above.diagonal(rows.start).fill_(0)
    return beneath + above


def _norm(part: Tensor, rows: Rows) -> float:
    """About the largest absolute value of an eigenvalue, and not more than it: the power method."""
    found, vector = 0.0, arange(1, rows.height + 1).to(part.spec.dtype).sin()
    for _ in range(STEPS):
        length = vector.abs().square().sum().sqrt()
        if not length.item():
            return found
        vector = rows.collected(part @ (vector / length), 0)
        found = vector.abs().square().sum().sqrt().item()
    return found


def decompose(part: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """Of a Hermitian matrix with these rows, the eigenvalues and the rows of the adjoint of the eigenvectors that belong to this process."""
    failure = eigen._not_converged("linalg.eigh")
    if not rows.agree(bool(part.isfinite().all())):
        raise failure
    frobenius = rows.collected(part.abs().square().sum(1), 0).sum().sqrt().item()
    # With twice the norm all eigenvalues become positive, and the largest is at most three times the smallest. If the power method
    # has missed the largest one, an eigenvalue comes out below -shift.
    for shift in (2 * _norm(part, rows) or 1.0, 2 * frobenius):
        shifted = part.clone()
        shifted.diagonal(rows.start).add_(shift)
        turned = orthogonalize(shifted, rows.height, rows, failure)
        vectors = turned / turned.abs().square().sum(1, keepdim=True).sqrt()
        # Rayleigh's quotients, so that the shift does not round eigenvalues.
        values = (rows.product(vectors, part) * vectors.conj()).sum(1).real
        everyone = rows.collected(values, 0)
        if everyone.abs().max().item() < shift:
            break
    order = everyone.argsort().tolist()
    return rows.taken(values, order, rows), rows.taken(vectors, order, rows)


@rule_for(eigen._linalg_eigh)
def _eigh(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,), UPLO = tensors, static["UPLO"]
    rows = _rows_of(a)
    if rows is None:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        values, vectors = decompose(_hermitian(a, UPLO, rows), rows)
        found = joined(values, rows.height, rows), joined(vectors, rows.height, rows).mH
    return recorded(op, found, tensors, (UPLO,))


@rule_for(eigen._eigvalsh)
def _eigvalsh(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,) = tensors
    rows = _rows_of(a)
    if rows is None:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        values, _ = decompose(_hermitian(a, static["UPLO"], rows), rows)
    return recorded(op, joined(values, rows.height, rows), tensors, (static["UPLO"],))
