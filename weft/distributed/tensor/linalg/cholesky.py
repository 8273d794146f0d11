"""Cholesky: a block of columns at a time, whose part below the diagonal all processes then subtract from the rest of their rows."""

from __future__ import annotations

from typing import Any

from ....core.dtype import int32
from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.linalg import equations, factorizations
from .._others import stacks_of_matrices
from .._rules import recorded, rule_for
from .rows import Rows, everywhere, joined, part_of, rows_of

WIDTH = 128  # columns of a block


def factorize(part: Tensor, rows: Rows) -> int:
    """Overwrite the rows of a positive-definite matrix by those of L; 0, or the order of the minor that is not positive-definite."""
    for owner, first, stop in rows.blocks(WIDTH):
        width = stop - first
        own = rows.own(first, stop)

        def diagonal(own: slice = own, first: int = first, stop: int = stop) -> Tensor:
            """The factor of the block, and LAPACK's info in one more row."""
            factor, info = factorizations.linalg_cholesky_ex(part[own, first:stop])
            found = part.new_zeros((stop - first + 1, stop - first))
            found[:-1], found[-1, 0] = factor, info.item()
            return found

        found = rows.from_owner(owner, diagonal, (width + 1, width), part)
        factor, info = found[:-1], int(found[-1, 0].real.item())
        if info:
            return first + info
        if rows.group.rank() == owner:
            part[own, first:stop] = factor
        below = rows.own(stop)
        panel = equations.solve_triangular(factor.mH, part[below, first:stop], upper=True, left=False)
        part[below, first:stop] = panel
        if stop < rows.height:
            all_below = rows.collected(panel, stop)
            if panel.spec.numel:  # only up to the diagonal
                last = max(rows.stop, stop)
                part[below, stop:last] -= panel @ all_below[: last - stop].mH
    part.tril_(rows.start)
    return 0


@rule_for(factorizations._linalg_cholesky_ex)
def _cholesky(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,), upper = tensors, static["upper"]
    rows = rows_of(a)
    if rows is None:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        part = part_of(a.mH if upper else a, rows)
        info = part.new_full((), factorize(part, rows), dtype=int32)
        factor = joined(part, a.spec.shape[0], rows)
        found = factor.mH if upper else factor, everywhere(info, rows)
    return recorded(op, found, tensors, (upper,))
