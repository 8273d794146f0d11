"""Batching rules of the steps of `interpolate` and `grid_sample`: the images of all samples are read in one call."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, batched_at, physical, wrap
from ..ops.nn import resampling, resizing, vision
from .arrays import along_dim
from .rules import Recordable, rule_for

rule_for(resampling.resample)(along_dim(1))


@rule_for(resizing._bilinear)
def _bilinear(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Recordable:
    """The samples are further images of the batch."""
    image, *rest = args
    value = physical(image, level)
    if not batched_at(image, level):
        return Recordable(op(value, *rest), args)
    resized = op(value.flatten(0, 1), *rest)
    return Recordable(wrap(resized.unflatten(0, value.shape[:2]), level), args)


@rule_for(vision._blended)
def _blended(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Recordable:
    """The samples are further images of the batch."""
    *tensors, fused = args
    batched = [batched_at(each, level) for each in tensors]
    values = [physical(each, level) for each in tensors]
    size = next(value.shape[0] for value, is_batch in zip(values, batched, strict=True) if is_batch)
    whole = [
        (value if is_batch else value.expand(size, *value.shape)).flatten(0, 1)
        for value, is_batch in zip(values, batched, strict=True)
    ]
    blended = op(*whole, fused)
    return Recordable(wrap(blended.unflatten(0, (size, blended.shape[0] // size)), level), args)
