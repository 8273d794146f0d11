"""Losses of classes that are cut: each process reads the scores of its own classes, and only sums of them are sent."""

from __future__ import annotations

from typing import Any

from ...families.indexed import Gather, Scatter, add_elements
from ...ops.nn.losses.classes import AT_CLASS
from ._indexed import Own, read_own, scatter
from ._rules import check_writable, local_as, mesh_of, placements_of, rule_for
from ._storage import is_distributed
from .placement_types import Partial, Placement, Replicate, Shard


def _of_numbers(place: Placement, dim: int) -> Placement:
    """The placement of the class numbers beside scores that lie so."""
    if not isinstance(place, Shard) or place.dim == dim:
        return Replicate()
    return Shard(place.dim - (place.dim > dim))


@rule_for(AT_CLASS)
def _scores_at_classes(op: Gather, args: tuple, static: dict[str, Any]) -> Any:
    return read_own(op, args, args[2])


@rule_for(AT_CLASS.scatter)
def _add_at_classes(op: Scatter, args: tuple, static: dict[str, Any]) -> Any:
    """The second half of cross_entropy's gradient, which is written into the first one: each process adds to its own classes."""
    target, (numbers,), share, dim, combine = args
    mesh = mesh_of(args)
    places = placements_of(target, mesh)
    lies_in_parts = is_distributed(target) and Shard(dim) in places and Partial() not in places
    if not lies_in_parts or combine is not add_elements or target._autograd is not None:
        return scatter(op, args, static)
    check_writable(target)
    beside = [_of_numbers(each, dim) for each in places]
    own = Own(local_as(numbers, mesh, beside), target.spec.shape[dim], dim, places, mesh)
    own.add(op, target._storage.local, local_as(share, mesh, beside), dim)
    return target
