"""Defines the elementwise part of a step of a recurrent cell as one kernel, and its derivative as another.

The formula of the cell is traced (`families/traced.py`). A traced value knows the op that made it, so that the derivative is made by
tracing the rules of these ops in reverse order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.device import device
from ...core.dtype import DType, compute_type
from ...core.iteration import loop_dims
from ...core.plans import PlanCache
from ...core.spec import contiguous_spec
from ...engine.expr import const
from ...engine.kernel import Launch
from ...engine.loops import Result
from ...families.elements import store_as
from ...families.traced import Traced, tracing
from .recurrent_cells import Kind

# ---- The derivative of a formula -------------------------------------------------------------------------------------


def _pull(results: Sequence[Traced], cts: Sequence[Traced]) -> dict[Traced, Traced]:
    """The cotangents of all traced values that the results depend on."""
    order: dict[Traced, None] = {}
    for each in results:
        _visit(each, order)
    cotangents = dict(zip(results, cts, strict=True))
    for value in reversed(order):
        if value.op is None or value not in cotangents:
            continue
        for rule, each in zip(value.op.derivative.rules, value.inputs, strict=True):
            part = rule(cotangents[value], value, *value.inputs)
            cotangents[each] = cotangents[each] + part if each in cotangents else part
    return cotangents


def _visit(value: Traced, order: dict[Traced, None]) -> None:
    """Add the value to `order`, after its inputs."""
    if value not in order:
        for each in value.inputs:
            _visit(each, order)
        order[value] = None


# ---- Kernels ------------------------------------------------------------------------------------------------------
# The operands are blocks of [rows, hidden] within wider rows: each gate is a block. Inputs, outputs and saved values have the dtype of
# the layer; intermediate values have its compute type.


class _Operands:
    """Collects the operands of a kernel."""

    def __init__(self, dtype: DType, rows: int, hidden: int, where: device):
        self.backend = where.backend
        self.dtype, self.compute, self.rows, self.hidden = dtype, compute_type(dtype), rows, hidden
        self.results: list[Result] = []
        self.inputs: list[DType] = []
        self.strides: tuple[list, list] = [], []  # of results, of inputs

    def load(self, count: int, width: int, dtype: DType) -> list[Any]:
        """Inputs, each of which is a block of rows that consist of `width` blocks; a width of 0 means one row for all."""
        first = len(self.inputs)
        self.inputs += [dtype] * count
        self.strides[1].extend([self._stride(width, dtype)] * count)
        operand = contiguous_spec((1,), dtype)
        return [Traced.load(first + k, operand, self.compute) for k in range(count)]

    def store(self, values: Sequence[Traced], width: int, dtype: DType) -> None:
        self.results += [store_as(each.value, contiguous_spec((1,), dtype)) for each in values]
        self.strides[0].extend([self._stride(width, dtype)] * len(values))

    def _stride(self, width: int, dtype: DType) -> tuple[int, int]:
        return width * self.hidden * dtype.itemsize, dtype.itemsize

    def launch(self) -> Launch:
        sizes, strides = loop_dims((self.rows, self.hidden), (*self.strides[0], *self.strides[1]))
        return self.backend.prepare(self.results, self.inputs, [], sizes, strides)


def _forward(
    kind: Kind, dtype: DType, rows: int, hidden: int, biased: bool, saving: bool, where: device
) -> Launch:
    """Return the kernel of a step.

    Results: the next state; the hidden state once more, as output; if `saving`, the pre-activations and the old state.
    Inputs: the projections of the input and of the hidden state; the biases of both if `biased`; the state.
    """
    operands = _Operands(dtype, rows, hidden, where)
    projected = operands.load(kind.n_gates, kind.n_gates, operands.compute)
    recurrent = operands.load(kind.n_gates, kind.n_gates, operands.compute)
    biases = [operands.load(kind.n_gates, 0, dtype) for _ in range(2)] if biased else []
    state = operands.load(kind.n_states, 1, operands.compute)
    with tracing():
        if biased:
            projected, recurrent = (
                [a + b for a, b in zip(each, bias, strict=True)]
                for each, bias in zip((projected, recurrent), biases, strict=True)
            )
        joined = kind.join(projected, recurrent)
        after = kind.update(joined, state)
    operands.store(after, 1, operands.compute)
    operands.store(after[:1], 1, dtype)
    if saving:
        operands.store(joined, kind.n_joined, dtype)
        operands.store(state, 1, dtype)
    return operands.launch()


def _backward(kind: Kind, dtype: DType, rows: int, hidden: int, where: device) -> Launch:
    """Return the kernel of the derivative of a step.

    Results: the cotangents of the projection of the input; of the projection of the hidden state, if that differs; of the state.
    Inputs: the cotangent of the hidden state through the product of the next step; the cotangents of the next state and of the
    output; the saved pre-activations and the old state.
    """
    operands = _Operands(dtype, rows, hidden, where)
    (through,) = operands.load(1, 1, operands.compute)
    ct = operands.load(kind.n_states, 1, operands.compute)
    (of_output,) = operands.load(1, 1, dtype)
    joined = operands.load(kind.n_joined, kind.n_joined, dtype)
    state = operands.load(kind.n_states, 1, dtype)
    with tracing():
        ct[0] = ct[0] + through + of_output
        cotangents = _pull(kind.update(joined, state), ct)
        # `join` adds two values or passes one on, so each of its inputs has the cotangent of its result.
        sources = [Traced(joined[0].kind, joined[0].value) for _ in range(2 * kind.n_gates)]
        projected, recurrent = sources[: kind.n_gates], sources[kind.n_gates :]
        for element, origin in zip(kind.join(projected, recurrent), joined, strict=True):
            for each in element.inputs or (element,):
                cotangents[each] = cotangents[origin]
    zero = Traced(state[0].kind, const(0.0, operands.compute))
    operands.store([cotangents[each] for each in projected], kind.n_gates, operands.compute)
    if is_split(kind):
        operands.store([cotangents[each] for each in recurrent], kind.n_gates, operands.compute)
    operands.store([cotangents.get(each, zero) for each in state], 1, operands.compute)
    return operands.launch()


def _copy(
    to: DType, dtype: DType, rows: int, columns: int, distances: tuple[int, int], where: device
) -> Launch:
    """The kernel that copies rows, whose `distances` in the result and in the input are in bytes."""
    value = Traced.load(0, contiguous_spec((1,), dtype), dtype).value
    to_row, from_row = distances
    sizes, strides = loop_dims((rows, columns), ((to_row, to.itemsize), (from_row, dtype.itemsize)))
    return where.backend.prepare([store_as(value, contiguous_spec((1,), to))], [dtype], [], sizes, strides)


def is_split(kind: Kind) -> bool:
    """Whether some pre-activation is a projection of the input or of the hidden state alone, so that their cotangents differ."""
    return kind.n_joined > kind.n_gates


FORWARD = PlanCache(_forward, with_sizes=True, name="recurrent")
BACKWARD = PlanCache(_backward, with_sizes=True, name="recurrent_backward")
COPIES = PlanCache(_copy, with_sizes=True, name="clone")
