"""Rows: which process has which rows of a matrix, and how they send blocks to each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ....core.spec import contiguous_spec
from ....core.tensor import Tensor
from ....ops.creation.from_data import tensor as as_tensor
from ... import _collectives
from ..._reduce_op import ReduceOp
from .._rules import local_as, mesh_of, placements_of
from .._storage import wrap
from ..placement_types import Placement, Replicate, Shard


class Rows(NamedTuple):
    """The cut of `count` rows among the processes of a group."""

    group: Any
    mesh: Any
    mesh_dim: int
    placements: tuple[Placement, ...]  # of a matrix that is cut so
    bounds: tuple[tuple[int, int], ...]  # of each process: its first row, and the one behind its last

    @property
    def start(self) -> int:
        return self.bounds[self.group.rank()][0]

    @property
    def stop(self) -> int:
        return self.bounds[self.group.rank()][1]

    @property
    def height(self) -> int:
        return self.bounds[-1][1]

    def blocks(self, width: int) -> list[tuple[int, int, int]]:
        """Blocks of at most `width` rows: the process that has them, their first row, and the one behind their last."""
        return [
            (owner, first, min(first + width, stop))
            for owner, (start, stop) in enumerate(self.bounds)
            for first in range(start, stop, width)
        ]

    def from_owner(
        self, owner: int, make: Callable[[], Tensor], sizes: Sequence[int], like: Tensor
    ) -> Tensor:
        """What `make` gives on the process `owner`, on all processes."""
        found = make().contiguous() if self.group.rank() == owner else like.new_zeros(sizes)
        _collectives.broadcast(found, group=self.group, group_src=owner)
        return found

    def own(self, first: int, stop: int | None = None) -> slice:
        """The rows of this process between two rows of the whole, as a slice of its part."""
        last = self.stop if stop is None else min(stop, self.stop)
        begin = max(first, self.start)
        return slice(begin - self.start, max(last, begin) - self.start)

    def agree(self, holds: bool) -> bool:
        """Whether something holds on all processes."""
        found = as_tensor(holds)
        _collectives.all_reduce(found, op=ReduceOp.MIN, group=self.group)
        return bool(found.item())

    def product(self, left: Tensor, part: Tensor) -> Tensor:
        """`left` times the matrix of whose rows each process has `part`, which the processes send in turn."""
        found = left.new_zeros((left.spec.shape[0], part.spec.shape[1]))
        for owner, (first, stop) in enumerate(self.bounds):
            if first < stop:
                block = self.from_owner(owner, lambda: part, (stop - first, part.spec.shape[1]), part)
                found += left[:, first:stop] @ block
        return found

    def taken(self, part: Tensor, order: Sequence[int], into: Rows) -> Tensor:
        """The rows of this process, in the cut `into`, of the matrix whose row k is row `order[k]` of this one."""
        wanted = [[row for row in order[first:stop]] for first, stop in into.bounds]
        given = [part[[row - self.start for row in rows if self.start <= row < self.stop]] for rows in wanted]
        own = wanted[self.group.rank()]
        places = [
            [place for place, row in enumerate(own) if first <= row < stop] for first, stop in self.bounds
        ]
        sizes = part.spec.shape[1:]
        pieces = [part.new_empty((len(each), *sizes)) for each in places]
        _collectives.all_to_all(pieces, given, group=self.group)
        found = part.new_empty((len(own), *sizes))
        for rows, piece in zip(places, pieces, strict=True):
            if rows:
                found[rows] = piece
        return found

    def collected(self, part: Tensor, first: int) -> Tensor:
        """The rows from `first` on of all processes; `part` has those of this process."""
        found = part.new_zeros((self.height - first, *part.spec.shape[1:]))
        begin = max(first, self.start) - first
        found[begin : begin + part.spec.shape[0]] = part
        _collectives.all_reduce(found, group=self.group)
        return found


def rows_of(matrix: Tensor, *others: Tensor) -> Rows | None:
    """How the rows of a matrix can be cut; None if it is no matrix, or is not cut along one dim of the mesh."""
    mesh = mesh_of((matrix, *others))
    if len(matrix.spec.shape) != 2 or not matrix.spec.numel:
        return None
    places = placements_of(matrix, mesh)
    cut = [mesh_dim for mesh_dim, place in enumerate(places) if isinstance(place, Shard)]
    if len(cut) != 1 or any(place.is_partial() for place in places):
        return None
    return cut_rows(mesh, cut[0], matrix.spec.shape[0])


def cut_rows(mesh: Any, mesh_dim: int, count: int) -> Rows:
    """The cut of `count` rows along one dim of the mesh."""
    group = mesh.get_group(mesh_dim)
    pieces = [Shard.local_shard_size_and_offset(count, group.size(), rank) for rank in range(group.size())]
    placements = tuple([Shard(0) if k == mesh_dim else Replicate() for k in range(mesh.ndim)])
    return Rows(group, mesh, mesh_dim, placements, tuple([(start, start + size) for size, start in pieces]))


def part_of(matrix: Tensor, rows: Rows) -> Tensor:
    """The rows of this process, in memory of their own."""
    return local_as(matrix, rows.mesh, rows.placements).clone().contiguous()


def joined(part: Tensor, count: int, rows: Rows) -> Any:
    """The matrix with `count` rows of which this process has `part`."""
    spec = part.spec
    return wrap(
        part, contiguous_spec((count, *spec.shape[1:]), spec.dtype, spec.device), rows.mesh, rows.placements
    )


def everywhere(value: Tensor, rows: Rows) -> Any:
    """A tensor that all processes have."""
    return wrap(value, value.spec, rows.mesh, [Replicate()] * rows.mesh.ndim)
