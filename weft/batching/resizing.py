"""Batching rules of the steps of `interpolate`: the images of all samples are resized in one call."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, batched_at, physical, wrap
from ..ops.nn import resizing
from .arrays import along_dim
from .rules import Recordable, rule_for

rule_for(resizing._resample)(along_dim(1))


@rule_for(resizing._bilinear)
def _bilinear(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Recordable:
    """The samples are further images of the batch."""
    image, *rest = args
    value = physical(image, level)
    if not batched_at(image, level):
        return Recordable(op(value, *rest), args)
    resized = op(value.flatten(0, 1), *rest)
    return Recordable(wrap(resized.unflatten(0, value.shape[:2]), level), args)
