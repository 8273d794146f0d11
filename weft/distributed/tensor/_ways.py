"""Ways to compute an op on parts: placements of the inputs that give a placement of the result. Of several, the one that moves the fewest bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from math import prod
from typing import Any, NamedTuple

from ...core.device import device
from ...core.recording import unrecorded
from ...core.spec import Spec
from ...core.tensor import Tensor, empty
from ._rules import all_distributed, local_as, placements_of
from ._storage import Placements, local_sizes, wrap
from .placement_types import Partial, Placement, Replicate, Shard, is_cut

_META = device("meta")


class Way(NamedTuple):
    """Placements of the inputs and of the result along one dim of the mesh."""

    inputs: tuple[Placement, ...]
    result: Placement


def cheapest(
    ways: Iterable[Way], inputs: Sequence[Tensor], nbytes: int, mesh: Any
) -> tuple[list[Placements], Placements]:
    """The placements of each input, and of the result, to which the inputs come with the fewest bytes; the first ones of several.

    nbytes: of the result. One that consists of summands may have to be added up later, so a quarter of them counts as well.
    """
    ways, given = list(ways), [placements_of(each, mesh) for each in inputs]
    along = list(zip(*given, strict=True))  # the placements of all inputs, for each dim of the mesh
    cuts = [mesh.size(dim) if _cuts_for_nothing(ways, own) else 1 for dim, own in enumerate(along)]
    chosen = []
    for mesh_dim, own in enumerate(along):
        # What the other dims of the mesh leave of each input, and of the result.
        shares = [
            each.spec.nbytes / _pieces(placements, mesh, mesh_dim)
            for each, placements in zip(inputs, given, strict=True)
        ]
        left = nbytes * cuts[mesh_dim] / prod(cuts)
        chosen.append(min(ways, key=partial(_cost_of, own, shares, left, mesh.size(mesh_dim))))
    return list(zip(*[way.inputs for way in chosen], strict=True)), tuple([way.result for way in chosen])


def _cost_of(
    given: Sequence[Placement], shares: Sequence[float], result: float, count: int, way: Way
) -> float:
    """The bytes that a way moves along one dim of the mesh, where inputs have these bytes, and the result."""
    moved = map(_cost, given, way.inputs, shares, repeat(count))
    return sum(moved) + (result / 4 if isinstance(way.result, Partial) else 0)


def _cuts_for_nothing(ways: Iterable[Way], given: Sequence[Placement]) -> bool:
    """Whether one of the ways takes inputs as they are, and cuts the result."""
    return any(
        isinstance(way.result, Shard)
        and all(old == new or isinstance(old, Replicate) for old, new in zip(given, way.inputs, strict=True))
        for way in ways
    )


def _pieces(placements: Placements, mesh: Any, mesh_dim: int) -> int:
    """Into how many pieces the dims of a mesh cut a tensor, without one of them."""
    return prod(
        mesh.size(dim) for dim, each in enumerate(placements) if dim != mesh_dim and isinstance(each, Shard)
    )


def _cost(old: Placement, new: Placement, nbytes: float, count: int) -> float:
    """Bytes that a process receives. Pieces that become other pieces count twice, because they are cut and joined as well."""
    if old == new or isinstance(old, Replicate):
        return 0.0
    share = nbytes / count
    if isinstance(old, Shard):
        return share * (count - 1) if isinstance(new, Replicate) else 2 * share
    return 2.0 * nbytes if isinstance(new, Replicate) else 1.0 * nbytes


def ways_beside(dims: Iterable[int], input: Spec, results: int) -> Iterator[Way]:
    """The ways for an op of one tensor that works along `dims`, where all other dims stay cut. results: how many dims a result has."""
    involved = [dim % len(input.shape) for dim in dims] if input.shape else []
    shorter = results < len(input.shape)  # `dims` are gone
    for dim in range(len(input.shape)):
        if dim not in involved:
            before = sum(other < dim for other in involved) if shorter else 0
            yield Way((Shard(dim),), Shard(dim - before))


def by_ways(
    ways: Iterable[Way], tensors: Sequence[Tensor], mesh: Any, run: Callable[..., Any], nbytes: int = 0
) -> Any:
    """The results of `run(*tensors)`, not recorded, in the cheapest of the ways under which a tensor stays as it lies, or on whole tensors.

    All results lie alike. nbytes: of the result, where a way gives summands.
    """
    given = [placements_of(each, mesh) for each in tensors]
    stay = [
        way
        for way in ways
        if any(new in own and not new.is_replicate() for new, own in zip(way.inputs, given))
    ]
    whole = Way((Replicate(),) * len(tensors), Replicate())
    wanted, places = cheapest([whole, *stay], tensors, nbytes, mesh)
    with unrecorded():
        parts = [local_as(each, mesh, own) for each, own in zip(tensors, wanted, strict=True)]
        if all(each.is_replicate() for each in places):
            return all_distributed(run(*parts), mesh)
        specs, single = _specs(tensors, run)
        lies = [_of_result(each, places) for each in specs]
        sizes = [local_sizes(each.shape, mesh, own) for each, own in zip(specs, lies)]
        if all(0 in each for each in sizes):  # some ops refuse tensors without elements
            found: Any = [parts[0].new_empty(own, dtype=each.dtype) for own, each in zip(sizes, specs)]
        else:
            found = run(*parts)
            found = [found] if single else found
    results = tuple([wrap(part, spec, mesh, own) for part, spec, own in zip(found, specs, lies, strict=True)])
    return results[0] if single else results


def _specs(tensors: Sequence[Tensor], run: Callable[..., Any]) -> tuple[list[Spec], bool]:
    """The specs of the results of `run(*tensors)`, and whether it is a single one."""
    found = run(*[empty(each.spec.like(device=_META)) for each in tensors])
    single, where = isinstance(found, Tensor), tensors[0].spec.device
    return [each.spec.like(device=where) for each in ((found,) if single else found)], single


def _of_result(spec: Spec, places: Placements) -> Placements:
    """The placements of one of several results: one without the dim that is cut is whole (the residuals of `lstsq` that are missing)."""
    return tuple([Replicate() if is_cut(each) and each.dim >= len(spec.shape) else each for each in places])
