"""Rearrangements: the pieces of a sample are pieces of the batch with one more dim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..core.batched import Level, batch_of, batched_at, physical, resumed, samples_of, wrap
from ..core.plans import PlanCache
from ..core.spec import Spec
from ..families.map import COPY
from ..families.rearrange import Piece, Rearrange
from .derivatives import BatchedDerivative
from .rules import Recordable, any_batched, batching_rule, check_writable


class BatchedRearrange(Rearrange):
    """A rearrangement of each sample. `batched` says which inputs are batches."""

    def __init__(self, op: Rearrange, batched: tuple[bool, ...], size: int):
        super().__init__(op.name, self._result, self._pieces, node_name=op.node_name)
        self.op, self.batched, self.size = op, batched, size
        self.derivative = BatchedDerivative(op, batched) if op.derivative is not None else None

    def _samples(self, specs: Sequence[Spec]) -> list[tuple[Spec, int]]:
        """The metadata of a sample of each input, and how many bytes the samples lie apart."""
        return [
            samples_of[(spec,)] if is_batch else (spec, 0)
            for spec, is_batch in zip(specs, self.batched, strict=True)
        ]

    def _result(self, specs: Sequence[Spec], *static: Any) -> Spec:
        sample = self.op.result([spec for spec, _ in self._samples(specs)], *static)
        return batch_of[sample, sample.span * sample.dtype.itemsize, self.size]

    def _pieces(self, result: Spec, specs: Sequence[Spec], *static: Any) -> Iterable[Piece]:
        inputs = self._samples(specs)
        sample, step = samples_of[(result,)]
        for piece in self.op.pieces(sample, [spec for spec, _ in inputs], *static):
            yield piece._replace(
                view=batch_of[piece.view, inputs[piece.source][1], self.size],
                target=batch_of[piece.target, step, self.size],
            )


_batched = PlanCache(BatchedRearrange)


@batching_rule(Rearrange)
def _rearrange(level: Level, op: Rearrange, args: tuple, static: dict[str, Any]) -> Recordable:
    tensors, *rest = args
    values = [physical(x, level) for x in tensors]
    if any_batched(tensors, level):
        batched = tuple([batched_at(x, level) for x in tensors])
        result = wrap(_batched[op, batched, level.size](values, *rest), level)
    else:
        result = op(values, *rest)
    return Recordable(result, tensors, tuple(rest))


@batching_rule(Rearrange, method="into")
def _into(level: Level, op: Rearrange, args: tuple, static: dict[str, Any]) -> Any:
    out, tensors, *rest = args
    with resumed(level):
        result = op(tensors, *rest)
        check_writable(out, [result], level)
        return COPY.write(out, result)
