"""Ops of all other classes run on the samples. They call other ops, whose rules batch the work."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level
from .rules import batching_rule
from .steps import on_samples


@batching_rule(object)
def _on_samples(level: Level, op: Any, args: tuple, static: dict[str, Any]) -> Any:
    return on_samples(level, op, lambda *inputs: op.run(*inputs, **static), args)
