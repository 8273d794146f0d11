"""Views: where the dims of the input lie in the view, found by applying the rule of the view to a row-major tensor of the same shape.

A cut dim of the input may stay cut if the outermost dim that is made of it (`view`, `permute`), or that it is the outermost part of
(`flatten`), has a whole number of its rows on each process. Any other cut is undone first. The view of the part has the strides
that the same steps through the dims of the part give.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...core.iteration import check_reach
from ...core.recording import unrecorded
from ...core.size import Size
from ...core.spec import Spec, contiguous_spec, make_spec
from ...core.tensor import Tensor, as_new, make
from ...families.custom_vjp import CustomVjp
from ...families.map import COPY
from ...families.view import View
from ...ops.assembly.copying import copy_to
from ...ops.indexing import basic_indexing
from ...ops.indexing.basic_indexing import GETITEM
from ...ops.views.views import AS_STRIDED
from ._rules import (
    all_distributed,
    everywhere,
    local_as,
    mesh_of,
    placement_rule,
    placements_of,
    recorded,
    rule_for,
    run_whole,
)
from ._storage import NoPlacementRule, local_sizes, strides_like, wrap
from .placement_types import Placement, Replicate, Shard, is_cut


class _Dim(NamedTuple):
    """A dim of a view: it steps through one dim of the input, or runs over several of them in a row."""

    size: int
    dims: tuple[
        int, ...
    ]  # those of the input, from the outermost on; none for a dim that repeats, or of size 1
    step: int  # in elements of the innermost one


class Walk(NamedTuple):
    """How a view walks through the dims of its input, and where it starts in each of them."""

    dims: tuple[_Dim, ...]
    starts: tuple[int, ...]


def walk_of(sizes: Sequence[int], strides: Sequence[int], view: Spec, offset: int) -> Walk | None:
    """The walk of a view of a tensor with these sizes and strides; None if it is not one through the dims (`diagonal`)."""
    order = [dim for dim, size in enumerate(sizes) if size > 1 and strides[dim]]
    order.sort(key=lambda dim: -strides[dim])  # from the outermost on
    starts = [0] * len(sizes)
    for dim in order:
        starts[dim], offset = divmod(offset, strides[dim])
    dims = []
    for size, stride in zip(view.shape, view.stride, strict=True):
        found = _dim_of(size, stride, sizes, strides, order)
        if found is None:
            return None
        dims.append(found)
    return None if offset else Walk(tuple(dims), tuple(starts))


def _dim_of(
    size: int, stride: int, sizes: Sequence[int], strides: Sequence[int], order: Sequence[int]
) -> _Dim | None:
    if size == 1 or stride == 0:
        return _Dim(size, (), 0)
    place = next((place for place, dim in enumerate(order) if strides[dim] <= stride), None)
    if place is None or stride % strides[order[place]]:
        return None
    last, extent = order[place], size * stride
    if extent <= strides[last] * sizes[last]:
        return _Dim(size, (last,), stride // strides[last])
    for first in range(place):
        if strides[order[first]] * sizes[order[first]] == extent and stride == strides[last]:
            return _Dim(size, tuple(order[first : place + 1]), 1)
    return None


def cut_dim(walk: Walk, sizes: Sequence[int], dim: int, count: int) -> int | None:
    """The dim of the view that is cut as dim `dim` of the input is cut among `count` processes; None if there is none."""
    for place, each in enumerate(walk.dims):
        if not each.dims or each.dims[0] != dim or walk.starts[dim]:
            continue
        if len(each.dims) > 1:
            return place if sizes[dim] % count == 0 else None
        if each.size * each.step == sizes[dim]:
            return place if each.step == 1 or each.size % count == 0 else None
    return None


def view_of_part(part: Tensor, walk: Walk, sizes: Size, conj: bool, neg: bool) -> Tensor | None:
    """The view of a part. `sizes` are those of the part of the result; None if the strides of the part do not allow it."""
    spec = part.spec
    strides = []
    for each in walk.dims:
        if not each.dims:
            strides.append(0 if each.size > 1 else 1)
            continue
        inside = [dim for dim in each.dims if spec.shape[dim] != 1] or [each.dims[-1]]
        for outer, inner in zip(inside, inside[1:]):
            if spec.stride[outer] != spec.stride[inner] * spec.shape[inner]:
                return None
        strides.append(spec.stride[inside[-1]] * each.step)
    offset = sum(start * step for start, step in zip(walk.starts, spec.stride, strict=True))
    view = make_spec(sizes, tuple(strides), spec.dtype, spec.device, conj, neg)
    return make(part._storage, part._byte_offset + offset * spec.dtype.itemsize, view)


def _on_parts(
    walk: Walk, sizes: Sequence[int], placements: Sequence[Placement], mesh: Any
) -> tuple[list, list]:
    """The placements of the input, and of its view, with which the view works on parts."""
    given: list[Placement] = []
    made: list[Placement] = []
    for mesh_dim, place in enumerate(placements):
        dim = None
        if isinstance(place, Shard):
            if place not in given:  # nested cuts of one dim are undone
                dim = cut_dim(walk, sizes, place.dim, mesh.size(mesh_dim))
            place = Replicate() if dim is None else place
        given.append(place)
        made.append(place if dim is None else Shard(dim))
    return given, made


def _walked(input: Tensor, whole: Spec, walk: Walk) -> Tensor:
    """The view of a DTensor, not recorded; `whole` is the spec of the whole view."""
    mesh = mesh_of((input,))
    given, made = _on_parts(walk, input.spec.shape, placements_of(input, mesh), mesh)
    part, sizes = local_as(input, mesh, given), local_sizes(whole.shape, mesh, made)
    found = view_of_part(part, walk, sizes, whole.conj, whole.neg)
    if found is None:
        part = part.contiguous()
        found = view_of_part(part, walk, sizes, whole.conj, whole.neg)
    assert found is not None
    result: Any = wrap(found, whole, mesh, made)
    before: Any = input._storage
    result._storage.is_copy = before.is_copy or part._storage is not before.local._storage
    result._base = input if input._base is None else input._base
    return result


def settled(tensor: Any) -> Tensor:
    """A DTensor as it is, or the view that other code has made of one by giving its storage to a tensor with another spec."""
    storage = tensor._storage
    whole, spec = storage.whole, tensor.spec
    if spec is whole and tensor._byte_offset == 0:
        return tensor
    base = wrap(storage.local, whole, storage.mesh, storage.placements)
    found = _in_memory(base, spec, tensor._byte_offset)
    tensor._storage, tensor._byte_offset = found._storage, 0
    return tensor


def _in_memory(input: Any, spec: Spec, byte_offset: int) -> Tensor:
    """The tensor with this spec in the memory that the whole of a DTensor would have, not recorded: a view of parts, or else of the whole."""
    storage, whole = input._storage, input.spec
    mesh, over = storage.mesh, everywhere(storage.mesh)
    if spec.dtype is whole.dtype and spec.numel:
        walk = walk_of(whole.shape, whole.stride, spec, byte_offset // spec.dtype.itemsize)
        if walk is not None:
            return _walked(input, spec, walk)
    local = local_as(input, mesh, over)
    shared = local is storage.local and local.spec.stride == whole.stride
    if not shared:
        plain = make_spec(whole.shape, strides_like(whole.shape, whole), whole.dtype, whole.device)
        if plain.stride != whole.stride:
            raise NoPlacementRule("a view of a DTensor with gaps between its elements")
        local = copy_to(local.contiguous(), plain)
    result: Any = wrap(make(local._storage, local._byte_offset + byte_offset, spec), spec, mesh, over)
    result._storage.is_copy = storage.is_copy or not shared
    return result


def _row_major(spec: Spec) -> Spec:
    return contiguous_spec(spec.shape, spec.dtype, spec.device)


def _walk_of_rule(input: Spec, view: Spec, offset: int) -> Walk | None:
    """The walk of a view of a row-major tensor of the shape of `input`."""
    if not input.numel or view.dtype is not input.dtype:
        return None
    return walk_of(input.shape, _row_major(input).stride, view, offset)


def _unwalked(op: Any, args: tuple, whole: Spec) -> Any:
    """A view that does not walk through dims: of a copy, where dims are cut."""
    input, *rest = args
    storage = input._storage
    if any(map(is_cut, storage.placements)):
        copied = run_whole(op, args, {})
        copied._storage.is_copy = True
        return copied
    with unrecorded():
        found = op(storage.local, *rest)
    result: Any = wrap(found, whole, storage.mesh, storage.placements)
    result._storage.is_copy = storage.is_copy
    result._base = input if input._base is None else input._base
    return result


@placement_rule(View)
def _view(op: View, args: tuple, static: dict[str, Any]) -> Tensor:
    input, *rest = args
    whole = op.plans[(input.spec, *rest)].spec
    walk = _walk_of_rule(input.spec, *op.rule(_row_major(input.spec), *rest))
    result = _unwalked(op, args, whole) if walk is None else _walked(input, whole, walk)
    return recorded(op, result, (input,), tuple(rest))


@rule_for(AS_STRIDED)
def _as_strided(op: View, args: tuple, static: dict[str, Any]) -> Tensor:
    input, *rest = args
    spec, offset = op.rule(input.spec, *rest)
    check_reach("as_strided", input.spec, spec.shape, spec.stride, offset)
    result = _in_memory(input, spec, offset * spec.dtype.itemsize)
    result._base = input if input._base is None else input._base
    return recorded(op, result, (input,), tuple(rest))


@rule_for(*GETITEM.values())
def _getitem(op: Any, args: tuple, static: dict[str, Any]) -> Tensor:
    input, items, places = args
    spec, row_major = input.spec, _row_major(input.spec)
    offset = sum(start * row_major.stride[dim] for dim, start in places)
    walk = _walk_of_rule(spec, op.plans[(row_major, *items)].spec, offset)
    whole = op.plans[(spec, *items)].spec
    result = _unwalked(op, args, whole) if walk is None else _walked(input, whole, walk)
    starts = [start for _, start in places]
    return recorded(op, result, (input, *starts), (items, tuple([dim for dim, _ in places])))


# ---- Adjoints: zeros, with a part in the place of a view ----------------------------------------------------------------


def adjoint(op: CustomVjp, args: tuple) -> Any:
    """The adjoint of a view; None if `op` is another function."""
    view = getattr(op.function, "__self__", None)
    if view is AS_STRIDED and not args[1].is_contiguous:
        return None  # its strides do not follow those of the input
    if isinstance(view, View) and op is view.adjoint:
        part, whole, *rest = args
        row_major = _row_major(whole)
        return _embedded(op, part, row_major, view.rule(row_major, *rest), args[1:])
    if op is basic_indexing._getitem_backward:
        part, sizes, items, places = args
        row_major = contiguous_spec(sizes, part.spec.dtype, part.spec.device)
        offset = sum(start * row_major.stride[dim] for dim, start in places)
        canonical = basic_indexing.VIEW_PLANS[(row_major, *items)].spec, offset
        return _embedded(op, part, row_major, canonical, args[1:])
    return None


def _embedded(op: CustomVjp, part: Tensor, whole: Spec, canonical: tuple[Spec, int], static: tuple) -> Any:
    mesh = mesh_of((part,))
    walk = _walk_of_rule(whole, *canonical)
    if walk is None:
        with unrecorded():
            found = op.function(local_as(part, mesh, everywhere(mesh)), *static)
        return recorded(op, all_distributed(found, mesh), (part,), static)
    given: list[Placement] = []
    made: list[Placement] = []
    for mesh_dim, place in enumerate(placements_of(part, mesh)):
        dim = _source(walk, whole.shape, place, mesh.size(mesh_dim)) if isinstance(place, Shard) else None
        if isinstance(place, Shard) and (dim is None or Shard(dim) in made):
            place = Replicate()
        given.append(place)
        made.append(Shard(dim) if isinstance(place, Shard) and dim is not None else place)
    with unrecorded():
        local = local_as(part, mesh, given)
        found = local.new_zeros(local_sizes(whole.shape, mesh, made))
        target = view_of_part(found, walk, local.spec.shape, canonical[0].conj, canonical[0].neg)
        assert target is not None
        if target.spec.numel:
            COPY.write(target, local)
    return recorded(op, wrap(as_new(found), whole, mesh, made), (part,), static)


def _source(walk: Walk, sizes: Sequence[int], place: Shard, count: int) -> int | None:
    """The dim of the input that is cut if the dim of a view is cut."""
    dims = walk.dims[place.dim].dims
    return dims[0] if dims and cut_dim(walk, sizes, dims[0], count) == place.dim else None
