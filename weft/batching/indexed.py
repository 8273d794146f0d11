"""Gathers and scatters: which elements the indices of a sample point at, with the batch dim in front."""

from __future__ import annotations

from typing import Any

from ..core.batched import Level, as_batch, batched_at, physical, resumed, samples_of, wrap
from ..core.plans import PlanCache
from ..core.size import shape
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..families.indexed import Gather, IndexMap, Scatter
from ..ops.indexing.scatter_reduction import Reduction
from .derivatives import BatchedDerivative
from .elementwise import written
from .rules import Recordable, any_batched, batching_rule, check_writable
from .steps import on_samples


class _Batched:
    """What batches of both kinds share: the rule."""

    op: Any
    size: int
    batched: tuple[bool, ...]  # which of (the tensor, *indices) are batches

    def _access(self, spec: Spec, static: Any, *indices: Spec) -> IndexMap:
        samples, steps = [], []
        for each, is_batch in zip((spec, *indices), self.batched, strict=True):
            sample, step = samples_of[(each,)] if is_batch else (each, 0)
            samples.append(sample)
            steps.append(step // each.dtype.itemsize)
        access: IndexMap = self.op.rule(samples[0], static, *samples[1:])
        return access._replace(
            shape=shape((self.size, *access.shape)),
            stride=(steps[0], *access.stride),
            index_strides=tuple(
                [(step, *row) for step, row in zip(steps[1:], access.index_strides, strict=True)]
            ),
        )


class BatchedGather(_Batched, Gather):
    """Reads the elements that the indices of each sample select."""

    def __init__(self, op: Gather, batched: tuple[bool, ...], size: int):
        self.op, self.batched, self.size = op, batched, size
        Gather.__init__(
            self,
            op.name,
            self._access,
            in_memory_order=op.in_memory_order,
            wrap=op.wrap,
            error=op.error,
            always_checked=op.always_checked,
            derivative=BatchedDerivative(op, batched),
        )


class BatchedScatter(_Batched, Scatter):
    """Writes where the indices of each sample point at."""

    def __init__(self, op: Scatter, batched: tuple[bool, ...], size: int, value: int | None):
        self.op, self.batched, self.size, self.value = op, batched, size, value
        rules = (batched[0], value is not None, *batched[1:])
        Scatter.__init__(
            self,
            op.name,
            self._access,
            fit=self._fit,
            once=op.once,
            wrap=op.wrap,
            error=op.error,
            always_checked=op.always_checked,
            derivative=BatchedDerivative(op, rules),
        )

    def _fit(self, value: Spec, spec: Spec, static: Any, access: IndexMap) -> tuple[int, ...]:
        """The strides with which the value is read; its batch dim is dim `self.value`, or there is none."""
        step = 0
        if self.value is not None:
            value, step = samples_of[(value,)]
            step //= value.dtype.itemsize
        sample, _ = samples_of[(spec,)]
        inner = access._replace(
            shape=shape(access.shape[1:]),
            stride=access.stride[1:],
            index_strides=tuple([row[1:] for row in access.index_strides]),
        )
        return (step, *self.op.fit(value, sample, static, inner))


_takes = PlanCache(BatchedGather)
_puts = PlanCache(BatchedScatter)


@batching_rule(Gather)
def _take(level: Level, op: Gather, args: tuple, static: dict[str, Any]) -> Recordable:
    input, indices, how = args
    values = [physical(x, level) for x in (input, *indices)]
    if any_batched((input, *indices), level):
        batched = tuple([batched_at(x, level) for x in (input, *indices)])
        result = wrap(_takes[op, batched, level.size](values[0], values[1:], how), level)
    else:
        result = op(values[0], values[1:], how)
    return Recordable(result, (input, *indices), (how,))


@batching_rule(Scatter)
def _put(level: Level, op: Scatter, args: tuple, static: dict[str, Any]) -> Tensor:
    target, indices, value, how = args[:4]
    combine = args[4] if len(args) > 4 else static.get("combine")
    check_writable(target, (value, *indices), level)

    def write() -> None:
        into, source = physical(target, level), physical(value, level)
        places = [physical(x, level) for x in indices]
        if not batched_at(target, level):
            op(into, places, source, how, combine)
            return
        batched = tuple([batched_at(x, level) for x in (target, *indices)])
        which = 0 if batched_at(value, level) else None
        _puts[op, batched, level.size, which](into, places, source, how, combine)

    return written(op, target, (target, value, *indices), (how, combine), level, write)


@batching_rule(Reduction)
def _reduction(level: Level, op: Reduction, args: tuple, named: dict[str, Any]) -> Tensor:
    """Reduce into a copy of the target, and copy the result into the target.

    The old values of the target stay in another copy, because the derivative reads them.
    """
    target, source, index, *static = args
    check_writable(target, (source, index), level)
    inputs = (target, source, index)
    if not any_batched(inputs, level):
        return written(
            op,
            target,
            inputs,
            tuple(static),
            level,
            lambda: op(*[physical(x, level) for x in inputs], *static),
        )

    def reduced(old: Tensor, source: Tensor, index: Tensor) -> Tensor:
        return op.run(old.clone(), source, index, *static)

    with resumed(level):
        old = target.clone()
    result = on_samples(level, op, reduced, (old, source, index), tuple(static)).result

    def write() -> None:
        physical(target, level).copy_(as_batch(result, level))

    return written(op, target, inputs, tuple(static), level, write)
