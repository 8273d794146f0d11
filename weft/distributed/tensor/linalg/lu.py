"""LU with pivots from whole columns: the process that has the diagonal factorizes a block of columns, and rows change their places."""

from __future__ import annotations

from typing import Any

from ....core.dtype import from_numpy_dtype, int32
from ....core.recording import unrecorded
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ....ops.creation.creation import zeros
from ....ops.linalg import equations, factorizations, linalg
from ... import _collectives
from .._others import stacks_of_matrices
from .._rules import mesh_of, recorded, rule_for, whole
from .rows import Rows, cut_rows, everywhere, joined, part_of, rows_of
from .triangular import substitute

WIDTH = 64  # columns of a block


def factorize(part: Tensor, rows: Rows) -> tuple[Tensor, int]:
    """Overwrite the rows of a matrix by those of L and U. The pivots, from 1, and 0 or the first zero on the diagonal of U.

    Further columns behind the square matrix become L^-1 @ P @ these columns.
    """
    pivots, info = part.new_empty((rows.height,), dtype=int32), 0
    for owner, first, stop in rows.blocks(WIDTH):
        width = stop - first
        panel, swaps, failed = _panel(part, rows, owner, first, stop)
        info = info or (first + failed if failed else 0)
        pivots[first:stop] = swaps + first
        _exchange(part, rows, _moves(swaps.tolist(), first))
        own = rows.own(first)
        if own.start < own.stop:
            begin = rows.start + own.start - first
            part[own, first:stop] = panel[begin : begin + own.stop - own.start]

        def beside(first: int = first, stop: int = stop) -> Tensor:
            block = rows.own(first, stop)
            unit = part[block, first:stop]
            part[block, stop:] = equations.solve_triangular(
                unit, part[block, stop:], upper=False, unitriangular=True
            )
            return part[block, stop:]

        columns = part.spec.shape[1] - stop
        if columns:
            upper = rows.from_owner(owner, beside, (width, columns), part)
            below = rows.own(stop)
            if below.start < below.stop:
                part[below, stop:] -= part[below, first:stop] @ upper
    return pivots, info


def _panel(part: Tensor, rows: Rows, owner: int, first: int, stop: int) -> tuple[Tensor, Tensor, int]:
    """A block of columns below row `first`, factorized by the process `owner`: L and U, the pivots, and LAPACK's info."""
    width, count = stop - first, rows.height - first
    collected = rows.collected(part[rows.own(first), first:stop], first)

    def factors() -> Tensor:
        found, swaps, info = factorizations.linalg_lu_factor_ex(collected)
        packed = part.new_zeros((count + 2, width))
        packed[:-2], packed[-2], packed[-1, 0] = found, swaps, info.item()
        return packed

    packed = rows.from_owner(owner, factors, (count + 2, width), part)
    swaps = packed[-2].real if packed.spec.dtype.is_complex else packed[-2]
    return packed[:-2], swaps.to(int32), int(packed[-1, 0].real.item())


def _moves(swaps: list[int], first: int) -> dict[int, int]:
    """Where the rows that change places come from: row -> its old place."""
    found: dict[int, int] = {}
    for place, other in enumerate(swaps):
        row, partner = first + place, first + other - 1
        found[row], found[partner] = found.get(partner, partner), found.get(row, row)
    return {row: source for row, source in found.items() if row != source}


def _exchange(part: Tensor, rows: Rows, moves: dict[int, int]) -> None:
    """Move rows, of all columns, between the processes."""
    if not moves:
        return
    places = {row: place for place, row in enumerate(moves)}
    buffer = part.new_zeros((len(moves), part.spec.shape[1]))
    for row, place in places.items():
        if rows.start <= row < rows.stop:
            buffer[place] = part[row - rows.start]
    _collectives.all_reduce(buffer, group=rows.group)
    for row, source in moves.items():
        if rows.start <= row < rows.stop:
            part[row - rows.start] = buffer[places[source]]


@rule_for(factorizations._linalg_lu_factor_ex)
def _lu_factor(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,) = tensors
    rows, (m, n) = rows_of(a), a.spec.shape[-2:]
    if rows is None or m != n:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        part = part_of(a, rows)
        pivots, info = factorize(part, rows)
        found = (
            joined(part, m, rows),
            everywhere(pivots, rows),
            everywhere(part.new_full((), info, dtype=int32), rows),
        )
    return recorded(op, found, tensors)


@rule_for(factorizations._permutations)
def _permutations(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    """A permutation as a matrix, cut by rows."""
    (pivots,), count = tensors, static["size"]
    if len(pivots.spec.shape) != 1:
        return stacks_of_matrices(op, tensors, static)
    mesh = mesh_of(tensors)
    rows = cut_rows(mesh, 0, count)
    with unrecorded():
        swaps = whole(pivots, mesh).tolist()
        sources = list(range(count))
        for row, other in enumerate(swaps):
            sources[row], sources[other - 1] = sources[other - 1], sources[row]
        part = zeros(rows.stop - rows.start, count, dtype=from_numpy_dtype(static["dtype"]))
        for column, row in enumerate(sources):
            if rows.start <= row < rows.stop:
                part[row - rows.start, column] = 1
    return joined(part, count, rows)


def solve(part: Tensor, right: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """The rows of the solution of `A @ X = B`, whose rows of A and B these are, and LAPACK's info."""
    both = cat((part, right), 1)
    _, info = factorize(both, rows)
    solution = both[:, rows.height :].contiguous()
    substitute(both[:, : rows.height], solution, rows, upper=True, unitriangular=False)
    return solution, part.new_full((), info, dtype=int32)


@rule_for(equations._solve)
def _solve(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    a, b = tensors
    rows = rows_of(a, b)
    if rows is None or len(b.spec.shape) != 2:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        solution, info = solve(part_of(a, rows), part_of(b, rows), rows)
    return recorded(op, (joined(solution, rows.height, rows), everywhere(info, rows)), tensors)


@rule_for(linalg._linalg_inv_ex)
def _inverse(op: Any, tensors: tuple, static: dict[str, Any]) -> Any:
    (a,) = tensors
    rows = rows_of(a)
    if rows is None:
        return stacks_of_matrices(op, tensors, static)
    with unrecorded():
        part = part_of(a, rows)
        identity = part.new_zeros(part.spec.shape)
        identity[:, rows.start : rows.stop].fill_diagonal_(1)
        inverse, info = solve(part, identity, rows)
    return recorded(op, (joined(inverse, rows.height, rows), everywhere(info, rows)), tensors)
