"""Products of matrices: of the ways to compute one on parts, that which moves the fewest bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from math import prod
from typing import Any, NamedTuple

from ...core.recording import unrecorded
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.product import Product
from ._panels import by_panels, needs_panels
from ._rules import local_as, mesh_of, placement_rule, placements_of, recorded
from ._storage import Placements, wrap
from .placement_types import Partial, Placement, Replicate, Shard


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


def ways_of_product(a: Spec, b: Spec, whole: Spec) -> Iterator[Way]:
    """The ways for `a @ b`, where both have at least two dims. Dims before the last two broadcast."""
    whole_of = Replicate()
    yield Way((whole_of, whole_of), whole_of)
    ndim, rows, columns = len(whole.shape), len(a.shape) - 2, len(b.shape) - 2
    for dim in range(ndim - 2):
        mine, theirs = dim - (ndim - len(a.shape)), dim - (ndim - len(b.shape))
        own = [
            Shard(place) if place >= 0 and spec.shape[place] == whole.shape[dim] else whole_of
            for place, spec in ((mine, a), (theirs, b))
        ]
        yield Way(tuple(own), Shard(dim))
    yield Way((Shard(rows), whole_of), Shard(ndim - 2))
    yield Way((whole_of, Shard(columns + 1)), Shard(ndim - 1))
    yield Way((Shard(rows + 1), Shard(columns)), Partial())
    yield Way((Partial(), whole_of), Partial())
    yield Way((whole_of, Partial()), Partial())


@placement_rule(Product)
def _product(op: Product, args: tuple, static: dict[str, Any]) -> Any:
    a, b = args
    mesh, whole = mesh_of(args), op.plans[a.spec, b.spec].spec
    wanted, places = cheapest(_ways(a.spec, b.spec, whole), args, whole.nbytes, mesh)
    with unrecorded():
        if needs_panels(args, wanted, whole.shape, places, mesh):
            found, places = by_panels(a, b, places, mesh)
        else:
            found = op(*[local_as(each, mesh, own) for each, own in zip(args, wanted, strict=True)])
    result = wrap(found, whole, mesh, places)
    return recorded(op.step(a.spec, b.spec) if op.step else op, result, args)


def _ways(a: Spec, b: Spec, whole: Spec) -> Iterator[Way]:
    if len(a.shape) > 1 and len(b.shape) > 1:
        return ways_of_product(a, b, whole)
    return _ways_of_vectors(a, b, whole)


def _ways_of_vectors(a: Spec, b: Spec, whole: Spec) -> Iterator[Way]:
    """The ways where one of the two is a vector."""
    whole_of = Replicate()
    yield Way((whole_of, whole_of), whole_of)
    for dim in range(len(a.shape) - 1):
        yield Way((Shard(dim), whole_of), Shard(dim))
    if len(b.shape) > 1:
        kept = [dim for dim in range(len(b.shape)) if dim != len(b.shape) - 2]
        for place, dim in enumerate(kept):
            yield Way((whole_of, Shard(dim)), Shard(place))
    yield Way((Shard(len(a.shape) - 1), Shard(max(len(b.shape) - 2, 0))), Partial())
    yield Way((Partial(), whole_of), Partial())
    yield Way((whole_of, Partial()), Partial())


@placement_rule(Product, method="write")
def _write(op: Product, args: tuple, static: dict[str, Any]) -> None:
    target, a, b = args
    target.copy_(op(a, b))
