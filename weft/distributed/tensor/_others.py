"""Ops of all other classes: joined tensors, updates of optimizers, and those that work on whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.dispatch import PLAIN
from ...core.recording import unrecorded
from ...core.tensor import end_view, wrap_dim
from ...families.array_op import ArrayOp
from ...families.custom_vjp import CustomVjp
from ...families.rearrange import Rearrange
from ...families.update import FusedUpdate
from ...ops.assembly.joining import CAT
from ...ops.linalg.lapack import MatrixOp
from ._rules import (
    all_distributed,
    bare,
    local_as,
    mesh_of,
    placement_rule,
    placements_of,
    recorded,
    rule_for,
    run_whole,
    shards,
    tensors_in,
    whole,
)
from ._storage import NoPlacementRule, is_distributed, wrap
from ._views import adjoint
from .placement_types import Replicate, Shard


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
def matrix_op_on_whole(op: MatrixOp, tensors: tuple, static: dict[str, Any]) -> Any:
    found = run_whole(op, tensors, static)
    return recorded(op, found, tensors, tuple([static[name] for name in op._static[len(tensors) :]]))


@placement_rule(ArrayOp)
def _array_op(op: ArrayOp, args: tuple, static: dict[str, Any]) -> Any:
    found = run_whole(op, args, static)
    inputs = op._signature.bind(*args, **static)
    inputs.apply_defaults()
    return recorded(op, found, (*inputs.args, *inputs.kwargs.values()))


@placement_rule(Rearrange)
def _rearrange(op: Rearrange, args: tuple, static: dict[str, Any]) -> Any:
    tensors, *rest = args
    return recorded(op, run_whole(op, args, static), tensors, tuple(rest))


@placement_rule(Rearrange, method="into")
def _rearrange_into(op: Rearrange, args: tuple, static: dict[str, Any]) -> Any:
    out, tensors, *rest = args
    return out.copy_(op(tensors, *rest))


@rule_for(CAT)
def _cat(op: Rearrange, args: tuple, static: dict[str, Any]) -> Any:
    """Tensors that are not cut where they are joined."""
    tensors, dim = args
    mesh = mesh_of(tensors)
    lead: Any = max(filter(is_distributed, tensors), key=lambda each: shards(each._storage.placements))
    if any(each.spec.shape != lead.spec.shape for each in tensors):
        return _rearrange(op, args, static)
    row = wrap_dim(dim, len(lead.spec.shape))
    places = lead._storage.placements
    wanted = [each if isinstance(each, Shard) and each.dim != row else Replicate() for each in places]
    with unrecorded():
        found = op(tuple([local_as(each, mesh, wanted) for each in tensors]), dim)
    return recorded(op, wrap(found, op.plans[_key(tensors, dim)].spec, mesh, wanted), tensors, (dim,))


def _key(tensors: Sequence[Any], *static: Any) -> tuple:
    return (static, *[each.spec for each in tensors])


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
