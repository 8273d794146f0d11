"""Collectives that a program repeats. Their arguments were checked at the first call, and the checks depend on specs alone."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..autograd.inplace import check_write
from ..core.tensor import Tensor
from ._gloo import ProcessGroupGloo, is_plain
from ._group import ProcessGroup
from ._reduce_op import RedOpType
from ._world import _world

KEPT = 256  # calls that a group remembers

_NONE: dict[Hashable, Any] = {}


def broadcast_again(tensor: Any, src: Any, group_src: Any, group: Any) -> bool:
    """Carry a `broadcast` out if it is a repeated one; whether it was."""
    found = _found(group, ("broadcast", getattr(tensor, "spec", None), src, group_src))
    return found is not None and found[0].repeat((tensor,), "broadcast", tensor, found[1])


def all_reduce_again(tensor: Any, op: Any, group: Any) -> bool:
    """Carry an `all_reduce` out if it is a repeated one; whether it was."""
    found = _found(group, ("all_reduce", getattr(tensor, "spec", None), op))
    return found is not None and found[0].repeat((tensor,), "reduce", tensor, op, None)


def all_gather_again(outputs: Any, tensor: Any, group: Any) -> bool:
    """Carry an `all_gather` out if it is a repeated one; whether it was."""
    spec = getattr(tensor, "spec", None)
    found = _found(group, ("all_gather", spec))
    if found is None or type(outputs) is not list or len(outputs) != found[1]:
        return False
    for output in outputs:
        if getattr(output, "spec", None) is not spec:
            return False
        check_write(output)
    return found[0].repeat(outputs, "gather", outputs, tensor, None)


def barrier_again(group: Any) -> bool:
    """Carry a `barrier` out if it is a repeated one; whether it was."""
    found = _found(group, ("barrier",))
    return found is not None and found[0].repeat((), "barrier")


def _found(group: Any, call: Hashable) -> Any:
    members = _world.default_pg if group is None else group
    try:
        return getattr(members, "_repeats", _NONE).get(call)
    except TypeError:  # a wrong argument that has no hash
        return None


# ---- What may be repeated


def remember_broadcast(
    members: ProcessGroup, tensor: Tensor, src: int | None, group_src: int | None, root: int
) -> None:
    _remember(members, ("broadcast", tensor.spec, src, group_src), tensor, root)


def remember_all_reduce(members: ProcessGroup, tensor: Tensor, op: Any) -> None:
    if isinstance(op, RedOpType) and op is not RedOpType.AVG:  # an average is a sum and a division
        _remember(members, ("all_reduce", tensor.spec, op), tensor)


def remember_all_gather(members: ProcessGroup, outputs: list[Tensor], tensor: Tensor) -> None:
    if all(output.spec is tensor.spec for output in outputs):
        _remember(members, ("all_gather", tensor.spec), tensor, len(outputs))


def remember_barrier(members: ProcessGroup) -> None:
    _remember(members, ("barrier",))


def _remember(
    members: ProcessGroup, call: Hashable, tensor: Tensor | None = None, detail: int | None = None
) -> None:
    """Remember a call that was carried out, if an engine of weft reads and writes the memory of the tensor itself."""
    backend = members._backends.get("cpu")
    if isinstance(backend, ProcessGroupGloo) and (tensor is None or is_plain(tensor)):
        if len(members._repeats) == KEPT:
            members._repeats.clear()
        members._repeats[call] = backend, detail
