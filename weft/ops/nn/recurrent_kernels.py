"""One kernel for what a step of a recurrent cell does element by element, and one for its derivative.

Both are made of the cell's formula: it runs on elements, which remember the ops that made them. The rules of those ops, which
stand beside them, give the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.device import CPU
from ...core.dtype import DType, compute_type
from ...core.iteration import loop_dims
from ...core.plans import PlanCache
from ...engine.convert import convert
from ...engine.expr import Expr, const, load
from ...engine.kernel import Launch
from ...engine.loops import Result
from ...families.fusing import Symbol
from ...families.map import Map
from ..elementwise.arithmetic import ADD, MUL, SUB
from ..elementwise.pointwise import OPS, RELU
from .recurrent_cells import Kind

# ---- Formulas on elements -----------------------------------------------------------------------------------------


class Element:
    """A value in a formula, and the op that made it."""

    __slots__ = ("expr", "op", "inputs")

    def __init__(self, expr: Expr, op: Map | None = None, inputs: tuple[Element, ...] = ()):
        self.expr, self.op, self.inputs = expr, op, inputs

    # fmt: off
    def __add__(self, other: Element) -> Element: return _made(ADD, self, other)
    def __sub__(self, other: Element) -> Element: return _made(SUB, self, other)
    def __mul__(self, other: Element) -> Element: return _made(MUL, self, other)
    def sigmoid(self) -> Element: return _made(OPS["sigmoid"], self)
    def tanh(self) -> Element: return _made(OPS["tanh"], self)
    def relu(self) -> Element: return _made(RELU, self)
    # fmt: on


def _made(op: Map, *inputs: Element) -> Element:
    return Element(op.element(*[each.expr for each in inputs]), op, inputs)


def _pull(results: Sequence[Element], cts: Sequence[Expr]) -> dict[Element, Expr]:
    """The cotangents of all elements that the results are made of."""
    order: dict[Element, None] = {}
    for each in results:
        _visit(each, order)
    found = dict(zip(results, cts, strict=True))
    for element in reversed(order):
        if element.op is None or element not in found:
            continue
        values = [found[element], element.expr, *[each.expr for each in element.inputs]]
        for rule, each in zip(element.op.derivative.rules, element.inputs, strict=True):  # type: ignore[union-attr]
            part = rule(*[Symbol(value, value.dtype) for value in values]).expr
            found[each] = found[each] + part if each in found else part
    return found


def _visit(element: Element, order: dict[Element, None]) -> None:
    """Add the element to `order`, after what it is made of."""
    if element not in order:
        for each in element.inputs:
            _visit(each, order)
        order[element] = None


# ---- Kernels ------------------------------------------------------------------------------------------------------
# Their operands are blocks of [rows, hidden] within wider rows: a gate is one block of several. What comes from outside or
# is saved has the dtype of the layer, what is on the way its compute type.


class _Operands:
    """Collects the operands of a kernel."""

    def __init__(self, dtype: DType, rows: int, hidden: int):
        self.dtype, self.compute, self.rows, self.hidden = dtype, compute_type(dtype), rows, hidden
        self.results: list[Result] = []
        self.inputs: list[DType] = []
        self.strides: tuple[list, list] = [], []  # of results, of inputs

    def load(self, count: int, width: int, dtype: DType) -> list[Element]:
        """Inputs that are blocks of rows of `width` blocks; 0 for a single row."""
        first = len(self.inputs)
        self.inputs += [dtype] * count
        self.strides[1].extend([self._stride(width, dtype)] * count)
        return [Element(convert(load(first + k, dtype), self.compute)) for k in range(count)]

    def store(self, values: Sequence[Expr], width: int, dtype: DType) -> None:
        self.results += [Result((convert(each, dtype),)) for each in values]
        self.strides[0].extend([self._stride(width, dtype)] * len(values))

    def _stride(self, width: int, dtype: DType) -> tuple[int, int]:
        return width * self.hidden * dtype.itemsize, dtype.itemsize

    def launch(self) -> Launch:
        sizes, strides = loop_dims((self.rows, self.hidden), (*self.strides[0], *self.strides[1]))
        return CPU.backend.prepare(self.results, self.inputs, [], sizes, strides)


def _forward(kind: Kind, dtype: DType, rows: int, hidden: int, biased: bool, saving: bool) -> Launch:
    """Results: the next state, the hidden state again; if `saving`, what was joined, and the old state.

    Inputs: what the input and the hidden state add to the gates, their biases if `biased`, the state.
    """
    operands = _Operands(dtype, rows, hidden)
    projected = operands.load(kind.n_gates, kind.n_gates, operands.compute)
    own = operands.load(kind.n_gates, kind.n_gates, operands.compute)
    if biased:
        projected, own = (
            [a + b for a, b in zip(each, operands.load(kind.n_gates, 0, dtype), strict=True)]
            for each in (projected, own)
        )
    state = operands.load(kind.n_states, 1, operands.compute)
    joined = kind.join(projected, own)
    after = kind.update(joined, state)
    operands.store([each.expr for each in after], 1, operands.compute)
    operands.store([after[0].expr], 1, dtype)
    if saving:
        operands.store([each.expr for each in joined], kind.n_joined, dtype)
        operands.store([each.expr for each in state], 1, dtype)
    return operands.launch()


def _backward(kind: Kind, dtype: DType, rows: int, hidden: int) -> Launch:
    """Results: cotangents of what the input adds to the gates; of what the hidden state adds, if they differ; of the state.

    Inputs: the cotangent of the hidden state that came through the next product; of the next state; of the output; what
    was joined, and the old state.
    """
    operands = _Operands(dtype, rows, hidden)
    (through,) = operands.load(1, 1, operands.compute)
    ct = [each.expr for each in operands.load(kind.n_states, 1, operands.compute)]
    (of_output,) = operands.load(1, 1, dtype)
    joined = operands.load(kind.n_joined, kind.n_joined, dtype)
    state = operands.load(kind.n_states, 1, dtype)
    ct[0] = ct[0] + through.expr + of_output.expr
    found = _pull(kind.update(joined, state), ct)
    # Joining adds up, or takes one of both: who joins an element gets its cotangent.
    sources = [Element(each.expr) for each in joined[:1] * (2 * kind.n_gates)]
    projected, own = sources[: kind.n_gates], sources[kind.n_gates :]
    for element, origin in zip(kind.join(projected, own), joined, strict=True):
        for each in element.inputs or (element,):
            found[each] = found[origin]
    operands.store([found[each] for each in projected], kind.n_gates, operands.compute)
    if is_split(kind):
        operands.store([found[each] for each in own], kind.n_gates, operands.compute)
    operands.store([found.get(each, const(0.0, operands.compute)) for each in state], 1, operands.compute)
    return operands.launch()


def is_split(kind: Kind) -> bool:
    """Whether the input and the hidden state add to different things, so that their cotangents differ."""
    return kind.n_joined > kind.n_gates


FORWARD = PlanCache(_forward)
BACKWARD = PlanCache(_backward)
