"""Reductions and scans: dims that are kept may stay cut; a reduction over cut dims gives parts that the processes still have to combine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.recording import unrecorded
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.reduce import Reduce
from ...families.scan import Scan
from ...ops.reductions.norms import Norm
from ._rules import broadcast_placements, local_as, mesh_of, placement_rule, placements_of, recorded, shards
from ._storage import wrap
from ._ways import by_ways, ways_beside
from .placement_types import Partial, Placement, Replicate, Shard, _NormPartial, along, is_cut, is_sum

# How the parts of the results of a reduction over cut dims become the results.
_COMBINE = {
    "sum": ("sum",), "nansum": ("sum",), "count_nonzero": ("sum",), "nanmean": ("sum",), "linalg_vecdot": ("sum",),  # nanmean: its count
    "mean": ("avg",), "prod": ("product",), "any": ("sum",), "all": ("product",),
    "amax": ("max",), "amin": ("min",), "max": ("max",), "min": ("min",), "aminmax": ("min", "max"),
}  # fmt: skip
_LINEAR = frozenset(("sum", "mean"))
_NORMS = {0: Partial(), 1: Partial(), math.inf: Partial("max"), -math.inf: Partial("min")}


def _combined(op: Reduce, results: int) -> tuple[Partial, ...] | None:
    """The placements of the results of a reduction whose parts lie on several processes; None if parts do not say enough."""
    if isinstance(op, Norm):
        return (_NORMS.get(op.order) or _NormPartial(op.order),)
    names = _COMBINE.get(op.name, ())
    return tuple(map(Partial, names)) if len(names) == results else None


@placement_rule(Reduce)
def _reduce(op: Reduce, inputs: tuple, static: dict[str, Any]) -> Any:
    mesh = mesh_of(inputs)
    first = inputs[0]
    lead = max(
        inputs, key=lambda each: each.spec.shape == first.spec.shape and shards(placements_of(each, mesh))
    )
    dims, keepdim, params = static["dims"], static.get("keepdim", False), static.get("params", ())
    specs = tuple([each.spec for each in inputs])
    results = op.plans[specs, dims, keepdim, static.get("dtype"), len(params)].results
    steps = [
        _reduced_placements(op, place, first.spec, dims, keepdim, len(results), mesh.size(mesh_dim))
        for mesh_dim, place in enumerate(placements_of(lead, mesh))
    ]
    wanted = [given for given, _ in steps]
    with unrecorded():
        own = [
            local_as(each, mesh, broadcast_placements(each.spec, first.spec, wanted, each is lead))
            for each in inputs
        ]
        parts = op(*own, **_of_parts(op, static, wanted, mesh))
    single = isinstance(parts, Tensor)
    places = zip(*[made for _, made in steps], strict=True)
    found = [
        wrap(part, whole, mesh, each)
        for part, whole, each in zip((parts,) if single else parts, results, places, strict=True)
    ]
    shown = None if static.get("whole") else dims
    return recorded(op, found[0] if single else tuple(found), inputs, (shown, keepdim, *params))


def _of_parts(op: Reduce, static: dict[str, Any], wanted: list[Placement], mesh: Any) -> dict[str, Any]:
    """The arguments of the reduction of a part. The mean of a part divides by the average number of elements of the parts."""
    if not op.counted:
        return static
    cut = [mesh.size(k) for k, each in enumerate(wanted) if is_cut(each) and each.dim in static["dims"]]
    return {**static, "params": tuple([count / math.prod(cut) for count in static.get("params", ())])}


def _reduced_placements(
    op: Reduce, place: Placement, input: Spec, dims: tuple[int, ...], keepdim: bool, results: int, count: int
) -> tuple[Placement, tuple[Placement, ...]]:
    """The placements of the input and of the results along one dim of the mesh, which has `count` processes."""
    combined = _combined(op, results)
    if is_cut(place):
        own = place.dim
        if own not in dims:
            kept = place if keepdim else along(place, own - sum(dim < own for dim in dims))
            return place, (kept,) * results
        if combined is not None and not (
            _has_empty_piece(input.shape[own], count) and _need_elements(combined)
        ):
            return place, combined
    if is_sum(place) if op.name in _LINEAR else combined == (place,) and _may_come_first(op, place):
        return place, (place,) * results
    return Replicate(), (Replicate(),) * results


def _may_come_first(op: Reduce, place: Placement) -> bool:
    """Whether parts that the same reduction, or one like it, will combine may be reduced first: the maximum of maxima, the norm of norms."""
    return isinstance(place, _NormPartial) or not isinstance(op, Norm) and not is_sum(place)


def _has_empty_piece(size: int, count: int) -> bool:
    return Shard.local_shard_size_and_offset(size, count, count - 1)[0] == 0


def _need_elements(combined: Sequence[Partial]) -> bool:
    """Whether no elements have no result."""
    return any(each.reduce_op in ("min", "max") for each in combined)


@placement_rule(Scan)
def _scan(op: Scan, args: tuple, static: dict[str, Any]) -> Any:
    input, dim = args
    ways = ways_beside((dim,), input.spec, len(input.spec.shape))
    found = by_ways(ways, (input,), mesh_of(args), lambda own: op(own, dim))
    return recorded(op, found, (input,), (dim,))
