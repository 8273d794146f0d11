"""From one set of placements to another: which collectives bring each process its new part. Nothing here is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dtype import bool_
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from .. import _collectives
from .._reduce_op import ReduceOp
from ._storage import Placements
from .placement_types import Partial, Placement, Replicate, Shard

_REDUCE_OPS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "product": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
    "band": ReduceOp.BAND,
    "bor": ReduceOp.BOR,
    "bxor": ReduceOp.BXOR,
}


def redistributed(local: Tensor, sizes: Sequence[int], mesh: Any, old: Placements, new: Placements) -> Tensor:
    """The part of this process under the placements `new`, from that under `old`; `sizes` are those of the whole.

    Cuts of one dim by several dims of the mesh are nested: the last one is undone first, and made last.
    """
    if old == new:
        return local
    current = list(old)
    for mesh_dim in reversed(range(len(old))):
        if current[mesh_dim] != new[mesh_dim] or _lies_within(mesh_dim, current, new):
            step = new[mesh_dim] if _is_innermost(mesh_dim, current, new) else Replicate()
            step = Replicate() if step.is_partial() else step
            local = _step(local, sizes, mesh, mesh_dim, current, step)
    for mesh_dim, place in enumerate(new):
        local = _step(local, sizes, mesh, mesh_dim, current, place)
    return local


def _lies_within(mesh_dim: int, current: Sequence[Placement], new: Placements) -> bool:
    """Whether a dim of the mesh cuts pieces of another one that will change."""
    place = current[mesh_dim]
    return isinstance(place, Shard) and any(
        old != wanted and place in (old, wanted) for old, wanted in zip(current[:mesh_dim], new[:mesh_dim])
    )


def _is_innermost(mesh_dim: int, current: Sequence[Placement], new: Placements) -> bool:
    """Whether a dim of the mesh may go straight to its new placement: no other one cuts the same dims of the tensor."""
    dims = {each.dim for each in (current[mesh_dim], new[mesh_dim]) if isinstance(each, Shard)}
    others = (
        place
        for row in (current, new)
        for position, place in enumerate(row)
        if position != mesh_dim and isinstance(place, Shard)
    )
    return not any(place.dim in dims for place in others)


def _step(
    local: Tensor, sizes: Sequence[int], mesh: Any, mesh_dim: int, current: list[Placement], new: Placement
) -> Tensor:
    """Change the placement of one dim of the mesh."""
    old = current[mesh_dim]
    if old == new:
        return local
    group = mesh.get_group(mesh_dim)
    before = [*current]
    current[mesh_dim] = new
    if isinstance(new, Replicate):
        if isinstance(old, Shard):
            return _gathered(local, _size_there(sizes, mesh, before, mesh_dim, old.dim), old.dim, group)
        return _reduced(local, old, group)
    if isinstance(new, Partial):
        return _summand(local, new, group)
    assert isinstance(new, Shard)
    if isinstance(old, Partial):
        return _reduced_and_cut(local, old, new.dim, group)
    if isinstance(old, Shard):
        return _exchanged(local, _size_there(sizes, mesh, before, mesh_dim, old.dim), old.dim, new.dim, group)
    return _cut(local, new.dim, group)


def _size_there(
    sizes: Sequence[int], mesh: Any, placements: Sequence[Placement], mesh_dim: int, dim: int
) -> int:
    """The size that one dim of the mesh cuts: that of the whole, cut by the dims of the mesh before it."""
    size = sizes[dim]
    for position, place in enumerate(placements[:mesh_dim]):
        if isinstance(place, Shard) and place.dim == dim:
            size, _ = Shard.local_shard_size_and_offset(
                size, mesh.size(position), mesh.get_local_rank(position)
            )
    return size


def piece_of(local: Tensor, dim: int, count: int, rank: int) -> Tensor:
    """The piece of process `rank` of `count`."""
    size, start = Shard.local_shard_size_and_offset(local.spec.shape[dim], count, rank)
    return local.narrow(dim, start, size)


def _cut(local: Tensor, dim: int, group: Any) -> Tensor:
    return piece_of(local, dim, group.size(), group.rank()).contiguous()


def sent(local: Tensor, place: Placement, group: Any, source: int) -> Tensor:
    """The part of this process of a tensor whose values process `source` of the group has."""
    if isinstance(place, Shard):
        count, size = group.size(), local.spec.shape[place.dim]
        full = -(-size // count)
        pieces = [_padded(piece_of(local, place.dim, count, rank), place.dim, full) for rank in range(count)]
        found = pieces[0].new_empty(pieces[0].spec.shape)
        given = pieces if group.rank() == source else None
        _collectives.scatter(found, given, group=group, group_src=source)
        return found.narrow(
            place.dim, 0, Shard.local_shard_size_and_offset(size, count, group.rank())[0]
        ).contiguous()
    found = local.clone().contiguous()
    _collectives.broadcast(found, group=group, group_src=source)
    return _summand(found, place, group) if isinstance(place, Partial) else found


def _gathered(local: Tensor, size: int, dim: int, group: Any) -> Tensor:
    """All pieces in a row; `size` is that of `dim` then."""
    count = group.size()
    given = _padded(local, dim, -(-size // count))  # all processes give pieces of the same size
    found = [given.new_empty(given.spec.shape) for _ in range(count)]
    _collectives.all_gather(found, given, group=group)
    return _joined(found, size, dim)


def _joined(pieces: Sequence[Tensor], size: int, dim: int) -> Tensor:
    """Pieces without their padding in a row."""
    count = len(pieces)
    own = [Shard.local_shard_size_and_offset(size, count, rank)[0] for rank in range(count)]
    return cat([piece.narrow(dim, 0, length) for piece, length in zip(pieces, own, strict=True)], dim)


def _with(local: Tensor, dim: int, size: int) -> list[int]:
    return [*local.spec.shape[:dim], size, *local.spec.shape[dim + 1 :]]


def _padded(local: Tensor, dim: int, size: int) -> Tensor:
    """The piece, contiguous, with zeros behind it so that it has this size."""
    if local.spec.shape[dim] == size:
        return local.contiguous()
    padded = local.new_zeros(_with(local, dim, size))
    padded.narrow(dim, 0, local.spec.shape[dim]).copy_(local)
    return padded


def _exchanged(local: Tensor, size: int, old: int, new: int, group: Any) -> Tensor:
    """Pieces along `new`, from pieces along `old`, of which the whole has `size`."""
    count = group.size()
    rows, columns = -(-size // count), -(-local.spec.shape[new] // count)
    given = [
        _padded(_padded(piece_of(local, new, count, rank), new, columns), old, rows) for rank in range(count)
    ]
    found = [each.new_empty(each.spec.shape) for each in given]
    _collectives.all_to_all(found, given, group=group)
    mine, _ = Shard.local_shard_size_and_offset(local.spec.shape[new], count, group.rank())
    return _joined(found, size, old).narrow(new, 0, mine).contiguous()


def _reduce_op(place: Placement, local: Tensor) -> Any:
    """The operation of a collective. The sum of bools is whether any is True, their product whether all are."""
    name = place.reduce_op  # type: ignore[attr-defined]
    if local.spec.dtype is bool_:
        name = {"sum": "max", "product": "min"}.get(name, name)
    return _REDUCE_OPS[name]


def _reduced(local: Tensor, place: Placement, group: Any) -> Tensor:
    found = local.clone().contiguous()
    _collectives.all_reduce(found, op=_reduce_op(place, local), group=group)
    return found


def _reduced_and_cut(local: Tensor, place: Placement, dim: int, group: Any) -> Tensor:
    count, size = group.size(), local.spec.shape[dim]
    full = -(-size // count)
    given = [_padded(piece_of(local, dim, count, rank), dim, full) for rank in range(count)]
    found = given[0].new_empty(given[0].spec.shape)
    _collectives.reduce_scatter(found, given, op=_reduce_op(place, local), group=group)
    mine, _ = Shard.local_shard_size_and_offset(size, count, group.rank())
    return found.narrow(dim, 0, mine).contiguous()


def _summand(local: Tensor, place: Placement, group: Any) -> Tensor:
    """A part whose reduction over all processes is what each of them has: of a sum, process 0 has it and the others zeros."""
    name = place.reduce_op  # type: ignore[attr-defined]
    if name in ("avg", "min", "max", "band", "bor") or group.rank() == 0:
        return local
    return local.new_ones(local.spec.shape) if name == "product" else local.new_zeros(local.spec.shape)
