"""Reductions and scans: their dims lie behind the batch dim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.batched import Level, as_batch, batched_at, physical, wrap
from ..core.tensor import Tensor
from ..families.reduce import Reduce
from ..families.scan import Scan
from .alignment import INSERT, aligned
from .rules import Recordable, any_batched, batching_rule


def wrapped(found: Any, level: Level) -> Any:
    """Return a batch, or several of them, as samples."""
    if isinstance(found, Tensor):
        return wrap(found, level)
    return type(found)([wrap(each, level) for each in found])


@batching_rule(Reduce)
def _reduce(level: Level, op: Reduce, inputs: tuple, static: dict[str, Any]) -> Recordable:
    if any_batched(inputs, level):
        found = _batches(op, inputs, level, **static)
    else:
        found = op(*[physical(x, level) for x in inputs], **static)
    dims = None if static.get("whole") else static["dims"]
    return Recordable(found, inputs, (dims, static.get("keepdim", False), *static.get("params", ())))


def _batches(
    op: Reduce,
    inputs: Sequence[Tensor],
    level: Level,
    dims: tuple[int, ...],
    whole: bool = False,
    **static: Any,
) -> Any:
    values = aligned(inputs, level)
    if not batched_at(inputs[0], level):  # further inputs broadcast to the first one
        values[0] = as_batch(inputs[0], level)
    return wrapped(op(*values, dims=tuple([dim + 1 for dim in dims]), **static), level)


@batching_rule(Scan)
def _scan(level: Level, op: Scan, args: tuple, static: dict[str, Any]) -> Recordable:
    input, dim = args
    value = physical(input, level)
    if not batched_at(input, level):
        found: Any = op(value, dim)
    elif input.spec.shape:
        found = wrapped(op(value, dim + 1), level)
    else:  # a number for each sample: scan a dim of size 1
        found = op(INSERT(value, 1, 1), 1)
        single = isinstance(found, Tensor)
        found = wrapped(found.squeeze(1) if single else tuple([each.squeeze(1) for each in found]), level)
    return Recordable(found, (input,), (dim,))
