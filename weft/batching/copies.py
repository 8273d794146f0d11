"""Copies: the batch is copied, and the samples lie in it one after the other."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, batch_of, batched_at, lift, physical, resumed, wrap
from ..core.grad_mode import mode
from ..core.tensor import Tensor
from ..ops.assembly.copying import TO_COPY, copy_to
from .rules import in_autograd, record, rule_for


@rule_for(copy_to)
def _copy_to(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Tensor:
    input, wanted, *given = args
    step = given[0] if given else TO_COPY
    value = physical(input, level)
    if batched_at(input, level):
        batch = batch_of[wanted, max(wanted.span, 1) * wanted.dtype.itemsize, level.size]
        result = wrap(copy_to(value, batch, step), level)
    else:
        result = lift(copy_to(value, wanted, step), level, fresh=True)
    if mode.enabled and in_autograd((input,), level):
        with resumed(level):
            return record(step, result, (input,), (), level)
    return result
