"""Losses that are one number per element, reduced: a Map with derivatives becomes one step, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable

from ....core.derivative import Derivative
from ....core.dtype import bool_
from ....core.iteration import broadcast_shapes
from ....core.recording import needs_recording
from ....core.symbols import as_float
from ....core.tensor import Tensor
from ....families.fusing import kernel_of
from ....families.kernel_graph import GraphBuilder, KernelGraph, Value
from ....families.map import Map
from ...reductions.reduction import MEAN, SUM
from .arguments import check_reduction


def elementwise(op: Map, *numbers: type) -> Callable[..., Tensor]:
    """Compute `loss(input, target, reduction, *numbers)` of an op of (input, target, *numbers)."""
    rules = op.derivative.rules  # type: ignore[union-attr]

    def build(graph: GraphBuilder, reduction: str) -> list[Value]:
        loss = graph.map(op, *graph.inputs, *graph.numbers)
        if reduction == "none":
            return [loss]
        dims = tuple(range(len(loss.spec.shape)))
        if reduction == "sum":
            return graph.reduce(SUM, loss, dims=dims, keepdim=False)
        return graph.reduce(MEAN, loss, dims=dims, numbers=(as_float(loss.spec.numel),), keepdim=False)

    def rule(ct, out, input, target, reduction, *numbers, specs, wanted):
        if reduction == "mean":
            ct = ct / max(math.prod(broadcast_shapes(op.name, *(each.shape for each in specs))), 1)
        # Bools cannot be subtracted.
        input, target = (
            each.to(ct.spec.dtype) if each.spec.dtype is bool_ else each for each in (input, target)
        )
        recorded = needs_recording((ct, input, target))
        return [
            (rules[k] if recorded else kernel_of(op, k))(ct, None, input, target, *numbers) if each else None
            for k, each in enumerate(wanted)
        ]

    graph = KernelGraph(op.name, 2, build, numbers=numbers, derivative=Derivative(joint=rule))

    def loss(input: Tensor, target: Tensor, reduction: str, *numbers: float) -> Tensor:
        check_reduction(reduction)
        return graph((input, target), (reduction,), numbers)

    return loss
