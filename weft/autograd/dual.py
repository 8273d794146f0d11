"""Tensors with tangents, for forward mode: levels, and where tangents are kept.

A tensor's tangents are in its `_tangents`, by level; levels of an outer differentiation have smaller numbers. A tensor that
has tangents but requires no grad has the `DUAL` mark in `_autograd`, so that operations on it are recorded.
"""

from __future__ import annotations

import itertools
from typing import Any

from ..core.tensor import Tensor, make, view_of


class Dual:
    """The mark of tensors that only forward mode follows."""

    __slots__ = ()


DUAL = Dual()
levels: list[int] = []  # those that are open, outermost first
_numbers = itertools.count(1)


def open_level() -> int:
    level = next(_numbers)
    levels.append(level)
    return level


def close_level(level: int) -> None:
    levels.remove(level)


def tangents(tensor: Any) -> dict[int, Tensor]:
    """The tangents of open levels."""
    if not levels or not isinstance(tensor, Tensor):
        return {}
    found = tensor.__dict__.get("_tangents")
    return {level: t for level, t in found.items() if level in levels} if found else {}


def set_tangents(tensor: Tensor, found: dict[int, Tensor]) -> Tensor:
    if found:
        tensor._tangents = found  # type: ignore[attr-defined]
        if tensor._autograd is None:
            tensor._autograd = DUAL
    return tensor


def below(tensor: Tensor, level: int) -> Tensor:
    """The tensor as outer levels see it: without the tangents of `level` and those opened after it."""
    edge = tensor._autograd
    alias = make(tensor._storage, tensor._start, tensor.spec)
    alias._autograd = None if edge is DUAL else edge
    return set_tangents(alias, {k: t for k, t in tangents(tensor).items() if k < level})


def with_tangent(tensor: Tensor, level: int, tangent: Tensor) -> Tensor:
    """A view of the tensor that has a tangent at `level`."""
    alias = view_of(tensor, tensor._start, tensor.spec)
    alias._autograd = tensor._autograd
    return set_tangents(alias, {**tangents(tensor), level: tangent})
