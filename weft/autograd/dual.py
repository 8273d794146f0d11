"""Levels of forward mode, and the tangents of tensors.

`tensor._tangents` maps a level to the tangent at this level. A level that was opened later has a larger number. A tensor that
has tangents and does not require grad has `DUAL` in `_autograd`, so that operations on it are recorded.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..core.batched import within
from ..core.grad_mode import detours, mode, open_levels
from ..core.layout_spec import as_cotangent
from ..core.recording import tape
from ..core.tensor import Tensor, make, view_of


class Dual:
    """The type of `DUAL`, the value of `_autograd` of tensors that have tangents and do not require grad."""

    __slots__ = ()


DUAL = Dual()
levels = open_levels  # outermost first
user_levels: list[
    int
] = []  # those of `torch.autograd.forward_ad`; the others are those of transforms in `func/`
_numbers = itertools.count(1)


class _State(threading.local):
    enabled = True  # whether tensors show their tangents, so that operations compute tangents


state = _State()
_marked: dict[int, list[weakref.ref[Tensor]]] = {}  # by level: the tensors that have a tangent at this level


_outer: dict[int, tuple[bool, bool]] = {}
# The functions of `tape` while no level is open, and while one is; `weft/autograd/__init__.py` fills them in.
reverse_only: dict[str, Callable] = {}
with_tangents: dict[str, Callable] = {}


def open_level() -> int:
    level = next(_numbers)
    levels.append(level)
    vars(tape).update(with_tangents)
    detours.append("forward")
    _outer[level] = mode.enabled, mode.reverse
    mode.enabled, mode.reverse = not mode.inference, mode.enabled and mode.reverse
    return level


def close_level(level: int) -> None:
    """Close a level and drop the tangents at this level."""
    levels.remove(level)
    if not levels:
        vars(tape).update(reverse_only)
    detours.remove("forward")
    mode.enabled, mode.reverse = _outer.pop(level)
    for reference in _marked.pop(level, ()):
        tensor = reference()
        if tensor is None:
            continue
        by_level = tensor.__dict__.get("_tangents", {})
        by_level.pop(level, None)
        if not by_level and tensor._autograd is DUAL:
            tensor._autograd = None


def tangents(tensor: Any) -> dict[int, Tensor]:
    """The tangents of the tensor at the open levels."""
    if not levels or not state.enabled or not isinstance(tensor, Tensor):
        return {}
    by_level = tensor.__dict__.get("_tangents")
    return {level: t for level, t in by_level.items() if level in levels} if by_level else {}


def set_tangents(tensor: Tensor, by_level: dict[int, Tensor]) -> Tensor:
    if by_level:
        before = tensor.__dict__.get("_tangents", ())
        tensor._tangents = by_level  # type: ignore[attr-defined]
        for level in by_level:
            if level not in before:
                _marked.setdefault(level, []).append(weakref.ref(tensor))
        if tensor._autograd is None:
            tensor._autograd = DUAL
    return tensor


def at_outer_levels(tensor: Tensor, level: int) -> Tensor:
    """The tensor with its tangents at the levels outside of `level` only."""
    edge = tensor._autograd
    alias = make(tensor._storage, tensor._byte_offset, tensor.spec)
    alias._autograd = None if edge is DUAL else edge
    return set_tangents(alias, {k: t for k, t in tangents(tensor).items() if k < level})


def with_tangent(tensor: Tensor, level: int, tangent: Tensor) -> Tensor:
    """A view of the tensor that has a tangent at `level`."""
    tensor, tangent = within(tensor), as_cotangent(tangent)
    alias = view_of(tensor, tensor._byte_offset, tensor.spec)
    alias._autograd = tensor._autograd
    tape.note_view(alias)
    return set_tangents(alias, {**tangents(tensor), level: tangent})
