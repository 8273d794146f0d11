"""Least squares of a tall matrix of full rank, by its QR factorization."""

from __future__ import annotations

from typing import Any

from ....core.dtype import int64
from ....core.recording import unrecorded
from ....ops.linalg import equations, least_squares
from ... import _collectives
from .._others import matrix_op_on_whole
from .._rules import recorded, rule_for
from .qr import tall_qr
from .rows import everywhere, joined, part_of, rows_of


@rule_for(least_squares._lstsq)
def _lstsq(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    a, b = tensors
    rows, (m, n), driver = rows_of(a, b), a.spec.shape[-2:], static["driver"]
    if rows is None or m < n or len(b.spec.shape) != 2 or driver not in ("gels", "gelsy"):
        return matrix_op_on_whole(op, tensors, static)
    with unrecorded():
        part, right = part_of(a, rows), part_of(b, rows)
        q, r = tall_qr(part, rows)
        diagonal = r.diagonal().abs()
        if driver == "gelsy" and bool((diagonal <= static["rcond"] * diagonal.max()).any()):
            return matrix_op_on_whole(op, tensors, static)
        turned = q.mH @ right
        _collectives.all_reduce(turned, group=rows.group)
        solution = equations.solve_triangular(r, turned, upper=True)
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
