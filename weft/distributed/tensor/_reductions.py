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
from ._rules import broadcast_placements, is_even, local_as, mesh_of, placement_rule, placements_of, recorded
from ._storage import wrap
from .placement_types import Partial, Placement, Replicate, Shard, along, is_cut

# How the parts of a reduction over cut dims become the result.
_COMBINE = {
    "sum": "sum", "mean": "avg", "prod": "product", "amax": "max", "amin": "min", "any": "sum", "all": "product",
    "max": "max", "min": "min",
}  # fmt: skip


@placement_rule(Reduce)
def _reduce(op: Reduce, inputs: tuple, static: dict[str, Any]) -> Any:
    mesh = mesh_of(inputs)
    first = inputs[0]
    dims, keepdim, params = static["dims"], static.get("keepdim", False), static.get("params", ())
    specs = tuple([each.spec for each in inputs])
    results = op.plans[specs, dims, keepdim, static.get("dtype"), len(params)].results
    wanted: list[Placement] = []
    found: list[Placement] = []
    for mesh_dim, place in enumerate(placements_of(first, mesh)):
        given, made = _reduced_placement(op, place, first.spec, dims, keepdim, len(results), mesh, mesh_dim)
        wanted.append(given)
        found.append(made)
    with unrecorded():
        own = [
            local_as(each, mesh, broadcast_placements(each.spec, first.spec, wanted, each is first))
            for each in inputs
        ]
        parts = op(*own, **_of_parts(op, static, wanted, mesh))
    shown = None if static.get("whole") else dims
    return recorded(op, _wrapped(parts, results, mesh, found), inputs, (shown, keepdim, *params))


def _of_parts(op: Reduce, static: dict[str, Any], wanted: list[Placement], mesh: Any) -> dict[str, Any]:
    """The arguments of the reduction of a part. The mean of a part divides by the average number of elements of the parts."""
    if not op.counted:
        return static
    cut = [mesh.size(k) for k, each in enumerate(wanted) if is_cut(each) and each.dim in static["dims"]]
    return {**static, "params": tuple([count / math.prod(cut) for count in static.get("params", ())])}


def _reduced_placement(
    op: Reduce,
    place: Placement,
    input: Spec,
    dims: tuple[int, ...],
    keepdim: bool,
    results: int,
    mesh: Any,
    mesh_dim: int,
) -> tuple[Placement, Placement]:
    """The placements of the input and of the result along one dim of the mesh."""
    combine = _COMBINE.get(op.name) if results == 1 else None
    if is_cut(place):
        own = place.dim
        if own not in dims:
            return place, place if keepdim else along(place, own - sum(dim < own for dim in dims))
        may_be_empty = not is_even(input.shape[own], mesh, mesh_dim)
        if combine is not None and not (may_be_empty and combine in ("min", "max")):
            return place, Partial(combine)
    if isinstance(place, Partial) and place.reduce_op in ("sum", "avg") and combine in ("sum", "avg"):
        return place, place
    return Replicate(), Replicate()


@placement_rule(Scan)
def _scan(op: Scan, args: tuple, static: dict[str, Any]) -> Any:
    input, dim = args
    mesh, results = mesh_of(args), op.plans[input.spec, dim].results
    places = placements_of(input, mesh)
    wanted = [p if isinstance(p, Shard) and p.dim != dim else Replicate() for p in places]
    with unrecorded():
        parts = op(local_as(input, mesh, wanted), dim)
    return recorded(op, _wrapped(parts, results, mesh, wanted), (input,), (dim,))


def _wrapped(parts: Any, specs: Sequence[Spec], mesh: Any, placements: Sequence[Placement]) -> Any:
    """The parts of one result, or of a tuple of results, with these specs."""
    single = isinstance(parts, Tensor)
    found = [
        wrap(part, whole, mesh, placements)
        for part, whole in zip((parts,) if single else parts, specs, strict=True)
    ]
    return found[0] if single else tuple(found)
