"""Collectives that a program repeats. Their arguments were checked at the first call, and most checks depend on specs alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ..autograd.inplace import check_write
from ..core.tensor import Tensor
from ._gloo import ProcessGroupGloo, is_plain
from ._group import ProcessGroup
from ._observers import of_thread
from ._world import _world

KEPT = 256  # calls that a group remembers


def repeated(group: Any, call: Hashable) -> Callable[..., bool] | None:
    """What carries out a call that the group remembers, from the tensors of the call; None for others, and while observers are told of calls.

    It returns False, and does nothing, while other collectives are under way, or if a tensor has to be checked again.
    """
    if of_thread.observers:
        return None
    members: Any = _world.default_pg if group is None else group
    try:
        return members._repeats.get(call)
    except (AttributeError, TypeError):  # there is no such group, or a wrong argument has no hash
        return None


def remember_in_place(
    members: ProcessGroup, call: Hashable, tensor: Tensor, method: str, *arguments: Any
) -> None:
    """Remember a collective that changes one tensor: a method of the engine, and its arguments after the tensor."""
    backend = _backend(members, tensor)
    if backend is None:
        return
    queue, turn = backend._carrier.queue, backend._carrier.turn

    def again(tensor: Tensor) -> bool:
        if queue or not turn.acquire(False):
            return False
        try:
            getattr(backend._engine, method)(tensor, *arguments)
        finally:
            tensor._storage.version += 1
            turn.release()
        return True

    members._repeats[call] = again


def remember_all_gather(members: ProcessGroup, call: Hashable, outputs: list[Tensor], tensor: Tensor) -> None:
    """Remember an `all_gather`, if all tensors have one spec."""
    backend, spec, count = _backend(members, tensor), tensor.spec, len(outputs)
    if backend is None or any(output.spec is not spec for output in outputs):
        return
    queue, turn = backend._carrier.queue, backend._carrier.turn

    def again(outputs: Any, tensor: Tensor) -> bool:
        if type(outputs) is not list or len(outputs) != count or queue:
            return False
        for output in outputs:
            if getattr(output, "spec", None) is not spec:
                return False
            check_write(output)
        if not turn.acquire(False):
            return False
        try:
            backend._engine.gather(outputs, tensor, None)
        finally:
            for output in outputs:
                output._storage.version += 1
            turn.release()
        return True

    members._repeats[call] = again


def _backend(members: ProcessGroup, tensor: Tensor) -> ProcessGroupGloo | None:
    """The backend of a group, if an engine of weft reads and writes the memory of the tensor itself."""
    backend = members._backends.get("cpu")
    if not isinstance(backend, ProcessGroupGloo) or not is_plain(tensor):
        return None
    if len(members._repeats) == KEPT:
        members._repeats.clear()
    return backend
