"""Products of matrices, in the way that moves the fewest bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.recording import unrecorded
from ...core.spec import Spec
from ...families.product import Product
from ._panels import by_panels, needs_panels
from ._rules import local_as, mesh_of, placement_rule, recorded
from ._storage import wrap
from ._ways import Way, cheapest
from .placement_types import Partial, Replicate, Shard


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
