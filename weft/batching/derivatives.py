"""Defines the derivative of an op for each sample of a batch: its rules run on samples, like any other code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.dual import DUAL
from ..autograd.graph import Node, NodeSpec, next_order
from ..core.batched import Level, as_batch, samples_of, wrap
from ..core.derivative import Derivative, Needs
from ..core.tensor import Tensor
from .opening import opened


class BatchedDerivative(Derivative):
    """The derivative of `op` for each sample. `batched` says which inputs are batches; the others serve all samples."""

    __slots__ = ("op", "batched")

    def __init__(self, op: Any, batched: tuple[bool, ...]):
        def joint(ct, out, *inputs, specs, spec, static, wanted):
            return self.pull(ct, out, inputs, specs, spec, static, wanted)

        super().__init__(results=op.derivative.results)
        self.joint = joint
        self.op, self.batched = op, batched

    def _find(self, wanted: int, n_inputs: int) -> Needs:
        return self.op.derivative.needs(wanted, n_inputs)

    def pull(
        self, ct, out, inputs: Sequence[Any], specs, spec, static: tuple, wanted: Sequence[bool]
    ) -> list:
        """The cotangents of the wanted inputs."""
        spec_of_one = spec[0] if type(spec) is tuple else spec
        with opened(spec_of_one.shape[0]) as level:
            node: Node = object.__new__(Node)
            samples = [
                samples_of[(each,)][0] if is_batch and each is not None else each
                for each, is_batch in zip(specs, self.batched, strict=True)
            ]
            result = (
                tuple([samples_of[(each,)][0] for each in spec])
                if type(spec) is tuple
                else samples_of[(spec,)][0]
            )
            node._spec = NodeSpec.of(self.op, tuple(samples), static, result)
            node._edges = tuple([DUAL if each else None for each in wanted])
            node._order = next_order()
            node._notes = node._leaves = None
            node._saved = (
                _wrapped(out, level),
                *[
                    wrap(x, level) if is_batch and isinstance(x, Tensor) else x
                    for x, is_batch in zip(inputs, self.batched, strict=True)
                ],
            )
            found = node._pull(_wrapped(ct, level), node._edges, True)
            # A rule for all inputs may leave out the last ones, which have no cotangent.
            found = [*found, *[None] * (len(wanted) - len(found))]
            return [
                _gathered(each, is_batch, one, level) if each is not None and is_wanted else None
                for each, is_batch, one, is_wanted in zip(found, self.batched, samples, wanted, strict=True)
            ]


def _wrapped(value: Any, level: Level) -> Any:
    if isinstance(value, Tensor):
        return wrap(value, level)
    return tuple([_wrapped(each, level) for each in value]) if isinstance(value, tuple) else value


def _gathered(ct: Tensor, is_batch: bool, spec: Any, level: Level) -> Tensor:
    """The cotangent of a batch, or of a tensor that all samples share: the sum over the samples."""
    if ct.spec.shape != spec.shape:
        ct = ct.sum_to_size(spec.shape)
    batch = as_batch(ct, level)
    return batch if is_batch else batch.sum(0)
