"""Graphs of several kernels: on samples, each kernel is an op of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.batched import Level, batched_at, fresh, physical, resumed, wrap
from ..core.plans import PlanCache
from ..core.spec import Spec, contiguous_spec
from ..core.tensor import Tensor, empty
from ..families.indexed import Scatter
from ..families.kernel_graph import EagerBuilder, KernelGraph
from ..families.map import Map
from ..families.product import Product
from ..families.view import View
from ..ops.nn import linear
from .rules import Recordable, any_batched, batching_rule, in_autograd, rule_for
from .steps import on_samples


class OnSamples(EagerBuilder):
    """In place of a GraphBuilder: carries out each kernel on samples."""

    @staticmethod
    def write(op: Map, target: Tensor, *operands: Any) -> None:
        op.write(target, *operands)

    @staticmethod
    def matmul(op: Product, a: Tensor, b: Tensor) -> Tensor:
        return fresh(op(a, b))

    @staticmethod
    def scatter(
        op: Scatter,
        target: Tensor,
        indices: Sequence[Tensor],
        value: Tensor,
        static: Any,
        combine: Callable | None = None,
    ) -> None:
        op(target, indices, value, static, combine)

    @staticmethod
    def view(rule: Callable[..., tuple[Spec, int]], operand: Tensor, *static: Any) -> Tensor:
        return _views[(rule,)](operand, *static)

    @staticmethod
    def constant(tensor: Tensor) -> Tensor:
        return tensor

    @staticmethod
    def new(spec: Spec) -> Tensor:
        return empty(spec)

    def empty(self, dtype: Any) -> Tensor:
        return empty(contiguous_spec((0,), dtype, self.inputs[0].spec.device))  # type: ignore[union-attr]


_views = PlanCache(View)


@batching_rule(KernelGraph)
def _kernel_graph(level: Level, op: KernelGraph, args: tuple, named: dict[str, Any]) -> Any:
    inputs = args[0]
    static = args[1] if len(args) > 1 else named.get("static", ())
    numbers = args[2] if len(args) > 2 else named.get("numbers", ())

    def compute(*inputs: Any) -> Any:
        found = op.build(OnSamples(inputs, numbers), *static)
        return found[0] if len(found) == 1 else tuple(found)

    if not any_batched(inputs, level) and (op.derivative is not None or not in_autograd(inputs, level)):
        values = tuple([physical(x, level) if isinstance(x, Tensor) else x for x in inputs])
        return Recordable(op(values, static, numbers), inputs, (*static, *numbers))
    if op.derivative is None:
        with resumed(level):
            return compute(*inputs)
    return on_samples(level, op, compute, tuple(inputs), (*static, *numbers))


@rule_for(linear._LINEAR, linear._LINEAR_WITH_BIAS)
def _linear(level: Level, op: KernelGraph, args: tuple, named: dict[str, Any]) -> Any:
    """With one weight for all samples, the samples are more rows."""
    inputs = args[0]
    *bias, input, weight = inputs
    if any(batched_at(x, level) for x in (*bias, weight)) or not batched_at(input, level):
        return _kernel_graph(level, op, args, named)
    return Recordable(wrap(op(tuple([physical(x, level) for x in inputs])), level), inputs)
