"""Triangles and diagonals of matrices: each process knows where in the matrix its part begins. No process makes a mask of the whole matrix."""

from __future__ import annotations

from typing import Any

from ...core.recording import unrecorded
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor
from ...ops.views import diagonal as diagonals
from ._others import _custom_vjp
from ._rules import local_as, mesh_of, placements_of, recorded, rule_for
from ._storage import ShardedStorage, local_sizes, own_piece, wrap
from ._views import _view
from .placement_types import Replicate, Shard


def _start(tensor: Tensor, mesh: Any, places: Any) -> int:
    """How many columns further right than the diagonal of this part the diagonal of the whole begins."""
    rows, columns = (
        own_piece(tensor.spec.shape[dim], dim, mesh, places)[1]
        for dim in (tensor.dim() - 2, tensor.dim() - 1)
    )
    return rows - columns


@rule_for(diagonals._tril, diagonals._triu)
def _triangle(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    input, diagonal = args
    mesh = mesh_of((input,))
    places = placements_of(input, mesh)
    if input.dim() < 2 or not all(
        each.is_shard() or each.is_replicate() or each.is_partial("sum") for each in places
    ):
        return _custom_vjp(op, args, static)
    with unrecorded():
        found = op.function(local_as(input, mesh, places), diagonal + _start(input, mesh, places))
    whole = contiguous_spec(input.spec.shape, input.spec.dtype, input.spec.device)
    return recorded(op, wrap(found, whole, mesh, places), (input,), (diagonal,))


@rule_for(diagonals.with_diagonal)
def _with_diagonal(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    square, value = args
    mesh = mesh_of((square,))
    places = [each if each.is_shard() else Replicate() for each in placements_of(square, mesh)]
    with unrecorded():
        found = local_as(square, mesh, places).clone()
        found.diagonal(_start(square, mesh, places), -2, -1).fill_(value)
    return recorded(op, wrap(found, square.spec, mesh, places), (square,), (value,))


def _cut_once(input: Any) -> bool:
    """Whether a square matrix is cut along one dim of the mesh, by rows or by columns."""
    sizes, places = input.spec.shape, input._storage.placements
    cut = [each for each in places if each.is_shard()]
    return (
        len(sizes) == 2
        and sizes[0] == sizes[1]
        and len(cut) == 1
        and not any(each.is_partial() for each in places)
    )


@rule_for(diagonals.DIAGONAL)
def _diagonal(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    """The diagonal of a matrix whose rows or columns are cut is cut where they are."""
    input, offset, first, second = args
    if offset or not _cut_once(input) or (first % 2, second % 2) != (0, 1):
        return _view(op, args, static)
    storage: ShardedStorage = input._storage
    mesh, places = storage.mesh, storage.placements
    part = local_as(input, mesh, places).diagonal(_start(input, mesh, places))
    made = [Shard(0) if each.is_shard() else each for each in places]
    result: Any = wrap(part, op.plans[(input.spec, *args[1:])].spec, mesh, made)
    result._storage.is_copy = storage.is_copy
    result._base = input if input._base is None else input._base
    return recorded(op, result, (input,), args[1:])


@rule_for(diagonals.DIAG_EMBED)
def _matrix_of(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    """A diagonal matrix is cut by rows, so that no process has all of it."""
    values, whole, offset, first, second = args
    mesh = mesh_of((values,))
    places = placements_of(values, mesh)
    fits = len(whole.shape) == 2 and values.spec.shape[0] == whole.shape[0]  # a value in each row
    if not fits or offset or any(each.is_partial() for each in places):
        return _custom_vjp(op, args, static)
    cut = next((dim for dim, each in enumerate(places) if each.is_shard()), 0)
    made = [Shard(0) if dim == cut else Replicate() for dim in range(mesh.ndim)]
    with unrecorded():
        local = local_as(values, mesh, made)
        found = local.new_zeros(local_sizes(whole.shape, mesh, made))
        found.diagonal(own_piece(whole.shape[0], 0, mesh, made)[1]).copy_(local)
    return recorded(op, wrap(found, whole, mesh, made), (values,), args[1:])
