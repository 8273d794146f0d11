"""The table of placement rules. `watch` carries out each call of an op with a DTensor by the rule of the op's family.

A rule decides under which placements the op can work on parts, brings its inputs there, runs the op on the parts, and says what the
parts of the result are. The step is recorded with DTensors as inputs and result. So the derivative of the op, which consists of
other ops, needs no rules of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...core import dispatch
from ...core.dispatch import PLAIN
from ...core.op_rules import OpRules
from ...core.recording import needs_recording, tape, unrecorded
from ...core.spec import Spec
from ...core.tensor import Tensor, make
from ._redistribute import redistributed
from ._storage import (
    NoPlacementRule,
    Placements,
    ShardedStorage,
    is_distributed,
    sharded,
    wrap,
)
from .placement_types import Placement, Replicate, along, is_cut

# A rule: (op, args, static) -> result
_table = OpRules()
placement_rule, rule_for = _table.of_families, _table.of_ops


def watch(op: Any, method: str, args: tuple, static: dict[str, Any]) -> Any:
    """The answer of the op's rule if an argument is a DTensor, else PLAIN."""
    distributed = [each for each in tensors_in((args, static.values())) if is_distributed(each)]
    if not distributed:
        return PLAIN
    for each in distributed:
        settle(each)
    rule = _table.find(op, method)
    assert rule is not None  # _others.py has one for all classes
    return rule(op, args, static)


@sharded.switches.append
def _watch(on: bool) -> None:
    if on:
        from . import _dispatch  # noqa: F401 (the class of DTensors, which makes every call of a function slower once it exists)
    (dispatch.watch if on else dispatch.unwatch)(watch)


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among values, and in the tuples, lists and dictionaries among them."""
    for each in values:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (tuple, list)) or type(each) is type({}.values()):
            yield from tensors_in(each)


def settle(tensor: Any) -> None:
    """Give a view its own storage, if code has made it by giving the storage of its base to a tensor with another spec."""
    if tensor.spec is not tensor._storage.whole or tensor._byte_offset:
        if tensor._storage.local is None:
            raise NoPlacementRule("a view of a tensor that lies nowhere yet")
        from ._views import settled  # which is written with rules

        settled(tensor)


# ---- What rules are written with -------------------------------------------------------------------------------------


def mesh_of(values: Iterable[Any]) -> Any:
    """The mesh of the DTensors among values.

    Raises: RuntimeError if there are several.
    """
    meshes = [each._storage.mesh for each in tensors_in(values) if is_distributed(each)]  # type: ignore[attr-defined]
    if any(each != meshes[0] for each in meshes):
        raise RuntimeError(
            f"an operation needs DTensors of one mesh, but found {meshes[0]} and "
            f"{next(each for each in meshes if each != meshes[0])}: redistribute one of them first"
        )
    return meshes[0]


def placements_of(tensor: Tensor, mesh: Any) -> Placements:
    """How a tensor lies on the mesh. A plain one is the same on all processes."""
    storage = tensor._storage
    if type(storage) is ShardedStorage:
        return storage.placements
    return (Replicate(),) * mesh.ndim


def local_as(tensor: Tensor, mesh: Any, wanted: Sequence[Placement]) -> Tensor:
    """The part of this process under other placements, without history."""
    storage = tensor._storage
    local = storage.local if type(storage) is ShardedStorage else plain(tensor)
    if local is None:
        raise NoPlacementRule("a tensor is read that lies nowhere yet")
    return redistributed(local, tensor.spec.shape, mesh, placements_of(tensor, mesh), tuple(wanted))


def plain(tensor: Tensor) -> Tensor:
    """A plain tensor without its history."""
    return tensor.detach() if tensor._autograd is not None else tensor


def as_distributed(tensor: Tensor, mesh: Any) -> Tensor:
    """The tensor; a plain one as a DTensor that is the same on all processes."""
    if is_distributed(tensor):
        settle(tensor)
        return tensor
    return wrap(plain(tensor), tensor.spec, mesh, everywhere(mesh))


def everywhere(mesh: Any) -> Placements:
    return (Replicate(),) * mesh.ndim


def broadcast_placements(
    operand: Spec, whole: Spec, placements: Sequence[Placement], stays: bool
) -> list[Placement]:
    """The placements of an operand that broadcasts. stays: whether it is made of summands as the result is."""
    missing = len(whole.shape) - len(operand.shape)
    found: list[Placement] = []
    for place in placements:
        if is_cut(place):
            dim = place.dim - missing
            follows = dim >= 0 and operand.shape[dim] == whole.shape[dim + missing]
            found.append(along(place, dim) if follows else Replicate())
        else:
            found.append(place if stays else Replicate())
    return found


def check_writable(target: Any) -> None:
    """Raises: NoPlacementRule for a view of a DTensor that had to be a copy."""
    if is_distributed(target) and target._storage.is_copy:
        raise NoPlacementRule(
            "this writes into a view of a dim that is cut; call redistribute() with Replicate() before the view is taken"
        )


def bare(value: Any) -> Any:
    """The value without the history of the tensors in it."""
    if type(value) in (tuple, list):
        return type(value)([bare(each) for each in value])
    if isinstance(value, Tensor) and value._autograd is not None:
        return make(value._storage, value._byte_offset, value.spec)
    return value


def whole(value: Any, mesh: Any) -> Any:
    """The value with all of each tensor in it on this process."""
    if isinstance(value, Tensor):
        return local_as(value, mesh, everywhere(mesh))
    if type(value) in (tuple, list):
        return type(value)([whole(each, mesh) for each in value])
    return value


def all_distributed(found: Any, mesh: Any) -> Any:
    """One or several results, as DTensors; plain ones are the same on all processes."""
    if isinstance(found, Tensor):
        return as_distributed(found, mesh)
    if isinstance(found, (tuple, list)):
        parts = [all_distributed(each, mesh) for each in found]
        return getattr(type(found), "_make", type(found))(parts)
    return found


def recorded(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """The result, as the result of a step if one of the inputs takes part in autograd."""
    return tape.record(op, result, inputs, static) if needs_recording(inputs) else result


def run_whole(op: Any, args: Sequence[Any], static: dict[str, Any]) -> Any:
    """The results of an op whose inputs are gathered first."""
    mesh = mesh_of((args, static.values()))
    with unrecorded():
        found = op(*[whole(each, mesh) for each in args], **{k: whole(v, mesh) for k, v in static.items()})
    return all_distributed(found, mesh)


def shards(placements: Placements) -> int:
    return sum(map(is_cut, placements))
