"""Ops of all other classes: rearrangements, ops on arrays and on stacks of matrices, updates of optimizers, and functions of ops."""

from __future__ import annotations

from typing import Any

from ...core.dispatch import PLAIN
from ...core.recording import unrecorded
from ...core.tensor import Tensor, end_view
from ...families.array_op import ArrayOp
from ...families.custom_vjp import CustomVjp
from ...families.rearrange import Rearrange
from ...families.update import FusedUpdate
from ...ops.linalg.lapack import MatrixOp, infos_spec
from ...ops.nn import resampling, resizing, vision
from ...ops.order import searching
from ._rules import (
    all_distributed,
    as_distributed,
    bare,
    local_as,
    mesh_of,
    placement_rule,
    placements_of,
    recorded,
    rule_for,
    run_whole,
    tensors_in,
    whole,
)
from ._slices import ways_of_pieces, ways_of_stacks
from ._storage import NoPlacementRule, is_distributed
from ._views import adjoint
from ._ways import Way, by_ways, ways_beside
from .placement_types import Partial, Replicate, Shard


@placement_rule(object)
def _on_whole(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    """Without a rule, an op of other ops runs as it is."""
    return PLAIN


@placement_rule(CustomVjp)
def _custom_vjp(op: CustomVjp, args: tuple, static: dict[str, Any]) -> Any:
    """Another function of ops runs as it is; if it reads memory, on whole tensors."""
    if (found := adjoint(op, args)) is not None:
        return found
    inputs = args[: op.inputs]
    try:
        with unrecorded():
            found = op.function(*[bare(each) for each in args])
    except NoPlacementRule:
        mesh = mesh_of(args)
        with unrecorded():
            found = op.function(*[whole(each, mesh) for each in args])
    found = all_distributed(found, mesh_of(args))
    for each in tensors_in((found,)):
        end_view(each)
    return recorded(op, found, inputs, args[len(inputs) :])


@placement_rule(MatrixOp)
def stacks_of_matrices(op: MatrixOp, tensors: tuple, static: dict[str, Any]) -> Any:
    """Each process has whole matrices, and LAPACK's infos of all of them, so that all raise the error of a matrix alike."""
    mesh = mesh_of(tensors)
    found = by_ways(
        ways_of_stacks([each.spec for each in tensors]), tensors, mesh, lambda *own: op(*own, **static)
    )
    if not isinstance(found, Tensor):
        infos = infos_spec(tensors[0].spec.shape[:-2])
        found = tuple(
            [as_distributed(whole(each, mesh), mesh) if each.spec is infos else each for each in found]
        )
    return recorded(op, found, tensors, tuple([static[name] for name in op._static[len(tensors) :]]))


@placement_rule(ArrayOp)
def _array_op(op: ArrayOp, args: tuple, static: dict[str, Any]) -> Any:
    """An op that works along `dim` or `dims` leaves the others alone. Where the sizes of results depend on values, that cannot be said."""
    bound = op._signature.bind(*args, **static)
    bound.apply_defaults()
    values, (input, *_) = bound.arguments, bound.args
    dims = values.get("dims", (values["dim"],) if "dim" in values else None)
    if dims is None or op._specs is None or sum(1 for _ in tensors_in(bound.args)) > 1:
        return recorded(op, run_whole(op, args, static), bound.args)
    shorter = 0 if values.get("keepdim", True) else len(dims)
    ways = ways_beside(dims, input.spec, len(input.spec.shape) - shorter)
    found = by_ways(ways, (input,), mesh_of(args), lambda own: op(own, *bound.args[1:]))
    return recorded(op, found, bound.args)


@rule_for(searching._searchsorted)
def _searchsorted(op: ArrayOp, args: tuple, static: dict[str, Any]) -> Any:
    """Of one sequence that is cut, each process counts the elements that come before a value; stacks of sequences are cut as the values are."""
    boundaries, input, sorter, *options = args
    tensors = (boundaries, input) if sorter is None else (boundaries, input, sorter)

    def run(boundaries: Tensor, input: Tensor, sorter: Tensor | None = None) -> Tensor:
        return op(boundaries, input, sorter, *options)

    ways, last = [], len(boundaries.spec.shape) - 1
    for dim in range(len(input.spec.shape)):
        sequences = Shard(dim) if dim < last else Replicate()
        beside = () if sorter is None else (sequences,)
        ways.append(Way((sequences, Shard(dim), *beside), Shard(dim)))
    if last == 0 and sorter is None:
        ways.append(Way((Shard(0), Replicate()), Partial()))
    found = by_ways(ways, tensors, mesh_of(args), run, input.spec.nbytes)
    return recorded(op, found, args)


@rule_for(searching._isin)
def _isin(op: ArrayOp, args: tuple, static: dict[str, Any]) -> Any:
    """Each process asks for its part of the elements, or whether they are in its part of the others."""
    elements, others, assume_unique, invert = args
    ways = [Way((Shard(dim), Replicate()), Shard(dim)) for dim in range(len(elements.spec.shape))]
    among = Partial("product" if invert else "sum")
    ways += [Way((Replicate(), Shard(dim)), among) for dim in range(len(others.spec.shape))]
    found = by_ways(
        ways,
        (elements, others),
        mesh_of(args),
        lambda *own: op(*own, assume_unique, invert),
        elements.spec.numel,
    )
    return recorded(op, found, args)


@rule_for(resampling.resample, resizing._bilinear)
def _resampled(op: CustomVjp, args: tuple, static: dict[str, Any]) -> Any:
    input, first, *tables = args
    dims = range(first, first + len(tables))
    ways = ways_beside(dims, input.spec, len(input.spec.shape))
    found = by_ways(ways, (input,), mesh_of((input,)), lambda own: op(own, first, *tables))
    return recorded(op, found, args)


@rule_for(vision._blended)
def _blended(op: CustomVjp, args: tuple, static: dict[str, Any]) -> Any:
    """Each process has some of the images, of the channels, or of the points."""
    *tensors, fused = args
    whole_of = Replicate()
    ways = [
        Way((Shard(0), Shard(0), Shard(0)), Shard(0)),
        Way((Shard(1), whole_of, whole_of), Shard(1)),
        Way((whole_of, Shard(2), Shard(2)), Shard(2)),
    ]
    found = by_ways(ways, tensors, mesh_of(tensors), lambda *own: op(*own, fused))
    return recorded(op, found, tensors, (fused,))


@placement_rule(Rearrange)
def _rearrange(op: Rearrange, args: tuple, static: dict[str, Any]) -> Any:
    tensors, *rest = args
    mesh = mesh_of(tensors)
    ways = list(ways_of_pieces(op, [each.spec for each in tensors], tuple(rest)))
    # Elements only move, so that parts of any kind may do so. All processes need the same order of ways, which a set does not have.
    lies = dict.fromkeys([each for tensor in tensors for each in placements_of(tensor, mesh)])
    ways += [Way((each,) * len(tensors), each) for each in lies if each.is_partial()]
    nbytes = sum(each.spec.nbytes for each in tensors)
    found = by_ways(ways, tensors, mesh, lambda *own: op(own, *rest), nbytes)
    return recorded(op, found, tensors, tuple(rest))


@placement_rule(Rearrange, method="into")
def _rearrange_into(op: Rearrange, args: tuple, static: dict[str, Any]) -> Any:
    out, tensors, *rest = args
    return out.copy_(op(tensors, *rest))


@placement_rule(FusedUpdate)
def _update(op: FusedUpdate, args: tuple, static: dict[str, Any]) -> None:
    """The step of an optimizer: each process updates its part, with the part of the gradient that belongs to it."""
    options, source, targets, numbers = args
    mesh = mesh_of(targets)
    places = placements_of(targets[0], mesh)
    for each in targets:
        if placements_of(each, mesh) != places or not is_distributed(each):
            return op.compose(options, source, targets, numbers)
    values = [whole(each, mesh) for each in numbers]
    op.run(options, local_as(source, mesh, places), [each._storage.local for each in targets], values)
    return None
