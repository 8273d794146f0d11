"""Ops made of other ops: they run on the samples, and one step is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.batched import (
    DataDependent,
    Level,
    NoBatchingRule,
    as_batch,
    batched_at,
    physical,
    resumed,
    suspended,
    wrap,
)
from ..core.op import Op
from ..core.plans import PlanCache
from ..core.recording import needs_recording, record
from ..core.tensor import Tensor, end_view, make
from ..families.custom_vjp import CustomVjp
from ..families.view import View
from .derivatives import BatchedDerivative
from .fallback import per_sample
from .opening import opened
from .rules import Recordable, batching_rule, outer_autograd
from .views import adjoint


def bare(x: Any) -> Any:
    """Return a tensor without its history within the level."""
    if type(x) in (tuple, list):
        return type(x)([bare(each) for each in x])
    return (
        make(x._storage, x._byte_offset, x.spec) if isinstance(x, Tensor) and x._autograd is not None else x
    )


def on_samples(level: Level, op: Any, compute: Callable, inputs: tuple, static: tuple = ()) -> Recordable:
    """`compute(*inputs)` on samples, as one step of `op` with these inputs."""
    if op.derivative is not None and outer_autograd(inputs, level):
        batched = tuple([isinstance(x, Tensor) and batched_at(x, level) for x in inputs])
        values = [physical(x, level) if isinstance(x, Tensor) else x for x in inputs]
        found = Vmapped(op, compute, batched, level.size, static)(*values)
        single = isinstance(found, Tensor)
        return Recordable(
            wrap(found, level) if single else tuple([wrap(each, level) for each in found]), inputs, static
        )
    samples = tuple([bare(x) for x in inputs])
    try:
        with resumed(level):
            found = compute(*samples)
    except DataDependent:
        raise
    except NoBatchingRule:
        found = per_sample(level, op.name, compute, samples, {})
    for each in (found,) if isinstance(found, Tensor) else found:
        end_view(each)
    return Recordable(found, inputs, static)


class Vmapped(Op):
    """`compute`, a function of samples, as an op on batches, with the derivative of `op` for each sample."""

    def __init__(self, op: Any, compute: Callable, batched: tuple[bool, ...], size: int, static: tuple):
        super().__init__(op.name, node_name=op.node_name)
        self.compute, self.batched, self.size, self.static = compute, batched, size, static
        # An op is there for good, a Vmapped for one call.
        lasts = not isinstance(op, Vmapped)
        self.derivative: Any = batched_derivatives[op, batched] if lasts else BatchedDerivative(op, batched)

    def run(self, *values: Any) -> Any:
        with opened(self.size) as level:
            samples = [
                wrap(bare(x), level) if is_batch else bare(x)
                for x, is_batch in zip(values, self.batched, strict=True)
            ]
            try:
                found = self.compute(*samples)
            except DataDependent:
                raise
            except NoBatchingRule:
                with suspended(level):
                    found = per_sample(level, self.name, self.compute, tuple(samples), {})
            several = not isinstance(found, Tensor)
            results = tuple([as_batch(each, level) for each in (found if several else (found,))])
        result = results if several else results[0]
        return record(self, result, values, self.static) if needs_recording(values) else result


batched_derivatives = PlanCache(BatchedDerivative)


@batching_rule(Vmapped)
def _vmapped(level: Level, op: Vmapped, args: tuple, named: dict[str, Any]) -> Recordable:
    return on_samples(level, op, op.run, args, op.static)


@batching_rule(CustomVjp)
def _custom_vjp(level: Level, op: CustomVjp, args: tuple, named: dict[str, Any]) -> Recordable:
    view = getattr(op.function, "__self__", None)
    if isinstance(view, View) and op is view.adjoint:
        return adjoint(level, view, args)
    inputs = args[: op.inputs]
    static = args[len(inputs) :]
    return on_samples(level, op, lambda *inputs: op.function(*inputs, *static), inputs, static)
