"""Elementwise ops: the operand with the most cuts keeps its placements, and the others follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.recording import needs_recording, record_inplace, unrecorded
from ...core.spec import Spec
from ...core.tensor import Tensor, empty
from ...families.map import COPY, Map, keyed
from ...ops.assembly.copying import TO_COPY, copy_to
from ._rules import (
    broadcast_placements,
    check_writable,
    local_as,
    mesh_of,
    placement_rule,
    placements_of,
    recorded,
    rule_for,
    shards,
)
from ._storage import NoPlacementRule, is_distributed, local_spec, wrap
from .placement_types import Partial, Placement, Replicate, along, is_cut, is_sum

# Ops that may work on summands: of all operands (`a + b`), of one operand (`a * b`), of the first one (`a / b`).
_SUMS = frozenset("add sub rsub neg clone to_copy".split())
_ONE_FACTOR = frozenset(("mul",))
_FIRST_FACTOR = frozenset(("div",))


@placement_rule(Map)
def _run(op: Map, args: tuple, static: dict[str, Any]) -> Tensor:
    operands, key = keyed(op.name, args)
    mesh, whole = mesh_of(operands), op.plans[key].spec
    lead = _leading(operands)
    placements = [_result_placement(op, operands, lead, whole, place) for place in lead._storage.placements]
    with unrecorded():
        found = op(*_parts(op, operands, lead, whole, mesh, placements))
    return recorded(op, wrap(found, whole, mesh, placements), operands)


def _leading(operands: Sequence[Any]) -> Any:
    """The operand that the others follow."""
    return max(filter(is_distributed, operands), key=lambda each: shards(each._storage.placements))


def _result_placement(
    op: Map, operands: Sequence[Any], lead: Tensor, whole: Spec, place: Placement
) -> Placement:
    if is_cut(place):
        dim = place.dim + len(whole.shape) - len(lead.spec.shape)
        return along(place, dim) if whole.shape[dim] == lead.spec.shape[place.dim] else Replicate()
    return place if _may_stay(place, op, operands, lead) else Replicate()


def _may_stay(place: Placement, op: Map, operands: Sequence[Any], lead: Tensor) -> bool:
    """Whether the op may work on summands."""
    if not is_sum(place):
        return False
    if op.name in _SUMS:
        return all(isinstance(each, Tensor) for each in operands[:2])
    return op.name in _ONE_FACTOR or op.name in _FIRST_FACTOR and operands[0] is lead


def _parts(
    op: Map, operands: Sequence[Any], lead: Any, whole: Spec, mesh: Any, placements: Sequence[Placement]
) -> list[Any]:
    """The operands on this process, for a result with these placements."""
    found: list[Any] = []
    for place, each in enumerate(operands):
        if isinstance(each, Tensor):
            is_first = not any(other is each for other in operands[:place])  # of `x * x`, one factor only
            stays = op.name in _SUMS or each is lead and is_first
            each = local_as(each, mesh, broadcast_placements(each.spec, whole, placements, stays))
        found.append(each)
    return found


# ---- Writes ----------------------------------------------------------------------------------------------------------


@placement_rule(Map, method="inplace")
def _inplace(op: Map, args: tuple, static: dict[str, Any]) -> Tensor:
    target, *others = args
    values, key = keyed(op.name, others)
    op.inplace_plans[(target.spec, *key)]  # raises if the result does not fit
    return _written(op, op, target, (target, *values), lambda local, parts: op.inplace(local, *parts[1:]))


@placement_rule(Map, method="write")
def _write(op: Map, args: tuple, static: dict[str, Any]) -> Tensor:
    target, *others = args
    values, _ = keyed(op.name, others)
    if is_distributed(target) and target._storage.local is None:
        return _placed(op, target, values)
    return _written(op, op.as_write, target, values, lambda local, parts: op.write(local, *parts))


def _written(op: Map, step: Any, target: Tensor, operands: Sequence[Any], write: Callable) -> Tensor:
    """Write into the target, whose placements stay.

    Raises: NoPlacementRule if the target consists of summands, and the op does not work on those.
    """
    mesh = mesh_of((target, *operands))
    placements = placements_of(target, mesh)
    check_writable(target)
    if any(isinstance(each, Partial) and not _may_stay(each, op, operands, target) for each in placements):
        raise NoPlacementRule(
            f"in-place operations that require placement changes are not supported: the tensor has the placements {placements}; "
            "redistribute it to Replicate() first"
        )

    def run() -> None:
        parts = _parts(op, operands, target, target.spec, mesh, placements)
        write(target._storage.local if is_distributed(target) else target, parts)  # type: ignore[attr-defined]

    if needs_recording((target, *operands)):
        return record_inplace(step, target, operands, (), run)
    run()
    return target


def _placed(op: Map, target: Any, operands: Sequence[Any]) -> Tensor:
    """The first write into a tensor that lies nowhere yet: it gets the placements of the result.

    Raises: NoPlacementRule if it is not the write of a DTensor.
    """
    if not any(map(is_distributed, operands)):
        raise NoPlacementRule("a write that says nothing of placements")
    mesh, whole, lead = mesh_of(operands), target.spec, _leading(operands)
    placements = tuple(
        [_result_placement(op, operands, lead, whole, place) for place in lead._storage.placements]
    )
    local = empty(local_spec(whole, mesh, placements))
    storage = target._storage
    storage.local, storage.mesh, storage.placements = local, mesh, placements
    op.write(local, *_parts(op, operands, lead, whole, mesh, placements))
    return target


@placement_rule(Map, method="into")
def _into(op: Map, args: tuple, static: dict[str, Any]) -> Tensor:
    out, *operands = args
    result = op(*operands)
    if out.spec.shape != result.spec.shape:
        raise RuntimeError(
            f"out= of {op.name} has shape {list(out.spec.shape)}, the result has {list(result.spec.shape)}: a DTensor cannot be "
            "resized"
        )
    return COPY.write(out, result)


@rule_for(copy_to)
def _copy_to(op: Any, args: tuple, static: dict[str, Any]) -> Tensor:
    input, wanted, *given = args
    storage = input._storage
    with unrecorded():
        found = copy_to(storage.local, local_spec(wanted, storage.mesh, storage.placements))
    result = wrap(found, wanted, storage.mesh, storage.placements)
    return recorded(given[0] if given else TO_COPY, result, (input,))
