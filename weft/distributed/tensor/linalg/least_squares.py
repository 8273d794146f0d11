"""Least squares of a tall matrix of full rank, by its QR factorization."""

from __future__ import annotations

from typing import Any

from ....core.dtype import int64
from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.linalg import equations, least_squares
from ... import _collectives
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .qr import blocked_qr, is_tall, tall_qr
from .rows import Rows, everywhere, joined, part_of, rows_of
from .triangular import substitute


def _substituted(triangle: Tensor, right: Tensor, rows: Rows) -> Tensor:
    """The solution, of which each process has all, of an upper triangle whose rows are cut."""
    own = right[rows.start : rows.stop].clone()
    substitute(triangle, own, rows, upper=True, unitriangular=False)
    return rows.collected(own, 0)


@rule_for(least_squares._lstsq)
def _lstsq(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    a, b = tensors
    rows, (m, n), driver = rows_of(a, b), a.spec.shape[-2:], static["driver"]
    if rows is None or m < n or len(b.spec.shape) != 2 or driver not in ("gels", "gelsy"):
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        part, right = part_of(a, rows), part_of(b, rows)
        is_small = is_tall(n, rows)
        q, r, *cut = tall_qr(part, rows) if is_small else blocked_qr(part.clone(), rows)
        diagonal = r.diagonal().abs() if is_small else cut[0].collected(r.diagonal(cut[0].start).abs(), 0)
        if driver == "gelsy" and bool((diagonal <= static["rcond"] * diagonal.max()).any()):
            return stacks_of_matrices(op, tensors, static)
        turned = q.mH @ right
        _collectives.all_reduce(turned, group=rows.group)
        solution = (
            equations.solve_triangular(r, turned, upper=True) if is_small else _substituted(r, turned, *cut)
        )
        squares = (part @ solution - right).abs().square().sum(0)
        _collectives.all_reduce(squares, group=rows.group)
        padded = right.new_zeros(right.spec.shape)  # LAPACK's result has as many rows as the right side
        own = rows.own(0, n)
        padded[own] = solution[rows.start : rows.start + own.stop - own.start]
        nothing = squares.new_empty(0)
        rank = part.new_full((), n, dtype=int64) if driver == "gelsy" else part.new_empty(0, dtype=int64)
        residuals = squares if driver == "gels" and m > n else nothing
        others = [everywhere(each, rows) for each in (residuals, rank, nothing)]
    return recorded(op, (joined(padded, m, rows), *others), tensors, (static["rcond"], driver))
