"""From one set of placements to another: which collectives bring each process its new part. Nothing here is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import bool_
from ...core.tensor import Tensor
from ...ops.assembly.joining import cat
from .. import _collectives, _functional_operators
from .._reduce_op import ReduceOp
from ._storage import Placements, in_order, own_piece
from .placement_types import Partial, Placement, Replicate, Shard, _NormPartial, _StridedShard

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
    if any(isinstance(each, _StridedShard) for each in (*old, *new)):
        return _through_plain(local, sizes, mesh, old, new)
    current = list(old)
    for mesh_dim in reversed(range(len(old))):
        if current[mesh_dim] != new[mesh_dim] or _lies_within(mesh_dim, current, new):
            step = new[mesh_dim] if _is_innermost(mesh_dim, current, new) else Replicate()
            step = Replicate() if step.is_partial() else step
            local = _step(local, sizes, mesh, mesh_dim, current, step)
    for mesh_dim, place in enumerate(new):
        local = _step(local, sizes, mesh, mesh_dim, current, place)
    return local


def _through_plain(
    local: Tensor, sizes: Sequence[int], mesh: Any, old: Placements, new: Placements
) -> Tensor:
    """Undo the cuts in turns, which are the innermost ones, and make those of the new placements last."""
    current = list(old)
    for mesh_dim, place in reversed(in_order(old)):
        if isinstance(place, _StridedShard):
            current[mesh_dim] = Replicate()
            size, _ = own_piece(sizes[place.dim], place.dim, mesh, current)
            local = _gathered(local, size, place.dim, mesh.get_group(mesh_dim))
    wanted = tuple([Replicate() if isinstance(each, _StridedShard) else each for each in new])
    local = redistributed(local, sizes, mesh, tuple(current), wanted)
    for mesh_dim, place in enumerate(new):
        if isinstance(place, _StridedShard):
            local = _cut(local, place.dim, mesh.get_group(mesh_dim))
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
    current[mesh_dim] = new
    before = current[:mesh_dim]  # whose pieces this dim of the mesh cuts
    if isinstance(new, Replicate):
        if isinstance(old, Shard):
            return _gathered(local, own_piece(sizes[old.dim], old.dim, mesh, before)[0], old.dim, group)
        return _reduced(local, old, group)
    if isinstance(new, Partial):
        return _summand(local, new, group)
    assert isinstance(new, Shard)
    if isinstance(old, Partial):
        return _reduced_and_cut(local, old, new.dim, group)
    if isinstance(old, Shard):
        size, _ = own_piece(sizes[old.dim], old.dim, mesh, before)
        return _exchanged(local, size, old.dim, new.dim, group)
    return _cut(local, new.dim, group)


def piece_of(local: Tensor, dim: int, count: int, rank: int) -> Tensor:
    """The piece of process `rank` of `count`."""
    size, start = Shard.local_shard_size_and_offset(local.spec.shape[dim], count, rank)
    return local.narrow(dim, start, size)


def _cut(local: Tensor, dim: int, group: Any) -> Tensor:
    return piece_of(local, dim, group.size(), group.rank()).contiguous()


def _pieces(local: Tensor, dim: int, group: Any) -> list[Tensor]:
    """The pieces of all processes, with zeros behind them so that they have the same size."""
    count = group.size()
    full = -(-local.spec.shape[dim] // count)
    return [_padded(piece_of(local, dim, count, rank), dim, full) for rank in range(count)]


def _evenly(local: Tensor, dim: int, group: Any) -> Tensor:
    """The tensor with zeros at the end of `dim`, so that all processes have pieces of the same size."""
    count = group.size()
    return _padded(local, dim, -(-local.spec.shape[dim] // count) * count)


def _own_part(piece: Tensor, size: int, dim: int, group: Any) -> Tensor:
    """The piece of this process without its padding; `size` is that of all pieces in a row."""
    own, _ = Shard.local_shard_size_and_offset(size, group.size(), group.rank())
    return piece.narrow(dim, 0, own).contiguous()


def sent(local: Tensor, place: Placement, group: Any, source: int) -> Tensor:
    """The part of this process of a tensor whose values process `source` of the group has."""
    if isinstance(place, Shard):
        pieces = _pieces(local, place.dim, group)
        piece = pieces[0].new_empty(pieces[0].spec.shape)
        given = pieces if group.rank() == source else None
        _collectives.scatter(piece, given, group=group, group_src=source)
        return _own_part(piece, local.spec.shape[place.dim], place.dim, group)
    found = local.clone().contiguous()
    _collectives.broadcast(found, group=group, group_src=source)
    return _summand(found, place, group) if isinstance(place, Partial) else found


def _gathered(local: Tensor, size: int, dim: int, group: Any) -> Tensor:
    """All pieces in a row; `size` is that of `dim` then."""
    count = group.size()
    given = _padded(local, dim, -(-size // count))  # all processes give pieces of the same size
    found = _functional_operators.all_gather_into_tensor(given, group)
    if dim == 0 and found.spec.shape[0] == size:
        return found
    own = [Shard.local_shard_size_and_offset(size, count, rank)[0] for rank in range(count)]
    pieces = zip(found.chunk(count), own, strict=True)
    return cat([piece.narrow(dim, 0, length) for piece, length in pieces], dim)


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
    given = _evenly(_padded(local, old, -(-size // group.size())), new, group)
    found = _functional_operators.shard_dim_alltoall(given, old, new, group)
    return _own_part(found.narrow(old, 0, size), local.spec.shape[new], new, group)


def _reduced(local: Tensor, place: Placement, group: Any) -> Tensor:
    """The reduction of all parts."""

    return _by_reduction(local, place, lambda parts, op: _functional_operators.all_reduce(parts, op, group))


def _reduced_and_cut(local: Tensor, place: Placement, dim: int, group: Any) -> Tensor:
    """The piece of this process of the reduction of all parts."""

    def reduce(parts: Tensor, op: ReduceOp) -> Tensor:
        given = _evenly(parts, dim, group)
        rows = given if dim == 0 else cat(given.chunk(group.size(), dim))
        found = _functional_operators.reduce_scatter_tensor(rows, op, group)
        return _own_part(found, parts.spec.shape[dim], dim, group)

    return _by_reduction(local, place, reduce)


def _by_reduction(local: Tensor, place: Any, reduce: Callable[[Tensor, Any], Tensor]) -> Tensor:
    """What parts become by `reduce(parts, op)`. The sum of bools is whether any is True, their product whether all are."""
    if isinstance(place, _NormPartial):
        return reduce(local**place.norm_type, ReduceOp.SUM) ** (1 / place.norm_type)
    name = place.reduce_op
    if local.spec.dtype is bool_:
        name = {"sum": "max", "product": "min"}.get(name, name)
    return reduce(local, _REDUCE_OPS[name])


def _summand(local: Tensor, place: Placement, group: Any) -> Tensor:
    """A part whose reduction over all processes is what each of them has: of a sum, process 0 has it and the others zeros."""
    name = place.reduce_op  # type: ignore[attr-defined]
    if name in ("avg", "min", "max", "band", "bor") or group.rank() == 0:
        return local
    return local.new_ones(local.spec.shape) if name == "product" else local.new_zeros(local.spec.shape)
