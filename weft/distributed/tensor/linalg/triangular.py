"""Triangular systems: the process that has a block of rows solves it, and the others subtract it from their right sides."""

from __future__ import annotations

from typing import Any

from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.linalg import equations
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .rows import Rows, joined, part_of, rows_of

WIDTH = 128  # rows of a block


def substitute(triangle: Tensor, right: Tensor, rows: Rows, upper: bool, unitriangular: bool) -> None:
    """Overwrite the rows of the right side by those of the solution."""
    blocks = rows.blocks(WIDTH)
    for owner, first, stop in reversed(blocks) if upper else blocks:
        own = rows.own(first, stop)

        def solve(own: slice = own, first: int = first, stop: int = stop) -> Tensor:
            diagonal = triangle[own, first:stop]
            return equations.solve_triangular(diagonal, right[own], upper=upper, unitriangular=unitriangular)

        solved = rows.from_owner(owner, solve, (stop - first, *right.spec.shape[1:]), right)
        if rows.group.rank() == owner:
            right[own] = solved
        others = rows.own(0, first) if upper else rows.own(stop)
        if others.start < others.stop:
            right[others] -= triangle[others, first:stop] @ solved


@rule_for(equations._linalg_solve_triangular)
def _solve_triangular(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    a, b = tensors
    upper, left, unitriangular = static["upper"], static["left"], static["unitriangular"]
    rows = rows_of(a, b)
    if rows is None or len(b.spec.shape) != 2:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        if left:
            right = part_of(b, rows)
            substitute(part_of(a, rows), right, rows, upper, unitriangular)
            found = joined(right, b.spec.shape[0], rows)
        else:  # X @ A = B is A.mT @ X.mT = B.mT
            found = op(a.mT, b.mT, upper=not upper, left=True, unitriangular=unitriangular).mT
    return recorded(op, found, tensors, (upper, left, unitriangular))
