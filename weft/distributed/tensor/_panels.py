"""Products of large matrices: the processes send a panel of columns of the one and of rows of the other at a time, so that none has a whole matrix.

Source: van de Geijn and Watts 1997, "SUMMA: scalable universal matrix multiplication algorithm".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.tensor import Tensor
from .. import _collectives
from ._rules import local_as, placements_of
from ._storage import Placements, local_sizes
from .placement_types import Placement, Shard

# Bytes of a gathered matrix. From here on the products of panels are so large that they take as long as one product of all (a panel
# has 1/16 of the columns on 16 processes, 180 of 2896 in float64), and the memory is worth saving.
LARGE = 1 << 26


def needs_panels(
    inputs: Sequence[Tensor],
    wanted: Sequence[Placements],
    sizes: Sequence[int],
    places: Placements,
    mesh: Any,
) -> bool:
    """Whether a process would get a large matrix, by gathering one or as a summand of the result."""
    if any(len(each.spec.shape) != 2 for each in inputs):
        return False
    gathered = [
        _bytes(each, each.spec.shape, own, mesh)
        for each, own in zip(inputs, wanted, strict=True)
        if own != placements_of(each, mesh)
    ]
    if any(each.is_partial() for each in places):
        gathered.append(_bytes(inputs[0], sizes, places, mesh))
    return max(gathered, default=0) > LARGE


def _bytes(like: Tensor, sizes: Sequence[int], places: Sequence[Placement], mesh: Any) -> int:
    found = like.spec.dtype.itemsize
    for size in local_sizes(sizes, mesh, places):
        found *= size
    return found


def by_panels(a: Tensor, b: Tensor, places: Placements, mesh: Any) -> tuple[Tensor, Placements]:
    """The part of `a @ b` on this process and its placements: those of `places`, where they say that columns are cut, or else rows."""
    made = tuple([each if each == Shard(1) else Shard(0) for each in places])
    left, right = local_as(a, mesh, made), local_as(b, mesh, made)
    found = left.new_zeros((left.spec.shape[0], right.spec.shape[1]))
    of_left = [dim for dim, each in enumerate(made) if each == Shard(1)]
    of_right = [dim for dim, each in enumerate(made) if each == Shard(0)]
    size = a.spec.shape[1]
    for first, stop in _panels(size, of_left, of_right, mesh):
        columns = _sent(left, 1, first, stop, size, of_left, mesh)
        found.addmm_(columns, _sent(right, 0, first, stop, size, of_right, mesh))
    return found, made


def _pieces(size: int, dims: Sequence[int], mesh: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    """The pieces of a cut by some dims of the mesh: first, stop, and the coordinates along these dims of who has it."""
    pieces: list[tuple[int, int, tuple[int, ...]]] = [(0, size, ())]
    for dim in dims:
        pieces = [
            (first + start, first + start + length, (*owner, rank))
            for first, stop, owner in pieces
            for rank in range(mesh.size(dim))
            for length, start in [Shard.local_shard_size_and_offset(stop - first, mesh.size(dim), rank)]
        ]
    return pieces


def _panels(
    size: int, of_left: Sequence[int], of_right: Sequence[int], mesh: Any
) -> Iterator[tuple[int, int]]:
    """Panels that one process has of each matrix."""
    edges = {
        edge
        for dims in (of_left, of_right)
        for first, stop, _ in _pieces(size, dims, mesh)
        for edge in (first, stop)
    }
    ordered = sorted(edges)
    yield from zip(ordered, ordered[1:])


def _sent(
    local: Tensor, dim: int, first: int, stop: int, size: int, dims: Sequence[int], mesh: Any
) -> Tensor:
    """A panel, from those who have it, along the dims of the mesh that cut it."""
    begin, owner = next(
        (begin, owner) for begin, end, owner in _pieces(size, dims, mesh) if begin <= first and stop <= end
    )
    if all(mesh.get_local_rank(each) == rank for each, rank in zip(dims, owner, strict=True)):
        panel = local.narrow(dim, first - begin, stop - first).contiguous()
    else:
        sizes = list(local.spec.shape)
        sizes[dim] = stop - first
        panel = local.new_empty(sizes)
    for each, rank in zip(dims, owner, strict=True):
        _collectives.broadcast(panel, group=mesh.get_group(each), group_src=rank)
    return panel
