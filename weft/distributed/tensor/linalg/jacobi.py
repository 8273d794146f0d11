"""Jacobi's method on blocks of rows: rotations of two blocks at a time, until all rows are orthogonal to each other.

Each process has two blocks and rotates them. Then blocks go to the neighbours, so that after a sweep every two blocks have met once.

Sources: Hestenes 1958, "Inversion of matrices by biorthogonalization and related results" (rotations from one side); Brent and Luk 1985, "The
solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays" (who meets whom).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....core.limits import finfo
from ....core.tensor import Tensor
from ....ops.assembly.joining import cat
from ....ops.linalg import eigen, factorizations
from ... import _collectives, _point_to_point
from ..._reduce_op import ReduceOp
from .rows import Rows

SWEEPS = 40  # random matrices take 6 to 10


class _Block(NamedTuple):
    number: int  # of 2 for each process
    rows: Tensor


def orthogonalize(part: Tensor, count: int, rows: Rows, failure: Exception) -> Tensor:
    """Rotate the rows of a matrix until their first `count` columns are orthogonal to each other, the longest rows foremost, roughly.

    `part` has the rows of this process. The other columns go along: those of the identity become the adjoint of the rotation.
    Raises: `failure` if that takes too long.
    """
    sizes = [
        size
        for start, stop in rows.bounds
        for size in (stop - start - (stop - start) // 2, (stop - start) // 2)
    ]
    rank, ranks = rows.group.rank(), rows.group.size()
    number = 2 * rank
    blocks = [_Block(number, part[: sizes[number]]), _Block(number + 1, part[sizes[number] :])]
    tolerance = 10 * finfo(part.spec.dtype).eps * count**0.5
    for _ in range(SWEEPS):
        worst, seats = 0.0, list(range(2 * ranks))
        for _ in range(max(2 * ranks - 1, 1)):
            blocks, found = _rotated(blocks, count, tolerance)
            worst = max(worst, found)
            seats = _moved(seats)
            blocks = _exchanged(blocks, seats[2 * rank : 2 * rank + 2], sizes, rows)
        over_all = part.new_full((), worst, dtype=part.spec.dtype.to_real())
        _collectives.all_reduce(over_all, op=ReduceOp.MAX, group=rows.group)
        if over_all.item() <= tolerance:
            return cat([block.rows for block in blocks])
    raise failure


def _rotated(blocks: list[_Block], count: int, tolerance: float) -> tuple[list[_Block], float]:
    """Two blocks with orthogonal rows, the longer ones in that with the lower number; how far they were from it before."""
    pair = sorted(blocks)
    both = cat([block.rows for block in pair])
    given = both[:, :count]
    if not both.spec.shape[0]:
        return blocks, 0.0
    products = (given @ given.mH).abs()
    lengths = products.diagonal().sqrt()
    longer = lengths.unsqueeze(0).maximum(lengths.unsqueeze(1)) * lengths.max()
    off = (products / longer.clamp(min=finfo(longer.spec.dtype).tiny)).fill_diagonal_(0).max().item()
    if off > tolerance:
        triangle = factorizations.linalg_qr(given.mH, mode="r").R
        left, _, _ = eigen.linalg_svd(triangle.mH, full_matrices=False)
        both = left.mH @ both
    first = pair[0].rows.spec.shape[0]
    found = [_Block(pair[0].number, both[:first]), _Block(pair[1].number, both[first:])]
    return found if pair[0].number == blocks[0].number else found[::-1], off


def _moved(seats: list[int]) -> list[int]:
    """Who sits where after a round, two seats for each process: all but the first move one seat on, up on one side and down on the other."""
    if len(seats) == 2:
        return seats
    upper, lower = seats[::2], seats[1::2]
    upper, lower = [upper[0], lower[0], *upper[1:-1]], [*lower[1:], upper[-1]]
    return [each for pair in zip(upper, lower, strict=True) for each in pair]


def _exchanged(blocks: list[_Block], wanted: list[int], sizes: list[int], rows: Rows) -> list[_Block]:
    """Send blocks to the neighbours and take those that they send: the blocks `wanted`."""
    rank, last = rows.group.rank(), rows.group.size() - 1
    if not last:
        return blocks
    upper, lower = blocks
    works: list[Any] = []
    found = {upper.number: upper, lower.number: lower}

    def send(block: _Block, to: int) -> None:
        works.append(_point_to_point.isend(block.rows.contiguous(), group=rows.group, group_dst=to))

    def take(number: int, source: int) -> None:
        block = _Block(number, upper.rows.new_zeros((sizes[number], upper.rows.spec.shape[1])))
        works.append(_point_to_point.irecv(block.rows, group=rows.group, group_src=source))
        found[number] = block

    if rank < last:
        send(upper if rank else lower, rank + 1)
        take(wanted[1], rank + 1)
    if rank:
        send(lower, rank - 1)
        take(wanted[0], rank - 1)
    for work in works:
        work.wait()
    return [found[number] for number in wanted]
