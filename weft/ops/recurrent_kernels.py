"""One kernel for what a step of a recurrent cell does element by element, and one for its derivative.

Both are made of the cell's formula: it runs on elements, which remember the ops that made them. The rules of those ops, which
stand beside them, give the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.device import CPU
from ..core.dtype import DType
from ..core.iteration import loop_dims
from ..core.op import PlanCache
from ..engine.expr import Expr, const, load
from ..engine.kernel import Launch
from ..engine.loops import Result
from ..families.fusing import Symbol
from ..families.map import Map
from .arithmetic import ADD, MUL, SUB
from .pointwise import OPS, RELU
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
            part = rule(*map(Symbol, values)).expr
            found[each] = found[each] + part if each in found else part
    return found


def _visit(element: Element, order: dict[Element, None]) -> None:
    """Add the element to `order`, after what it is made of."""
    if element not in order:
        for each in element.inputs:
            _visit(each, order)
        order[element] = None


# ---- Kernels ------------------------------------------------------------------------------------------------------
# Their operands are blocks of [rows, hidden] within wider rows: a gate is one block of several.


class _Blocks:
    """Collects the operands of a kernel."""

    def __init__(self, dtype: DType, rows: int, hidden: int):
        self.dtype, self.rows, self.hidden = dtype, rows, hidden
        self.results: list[Result] = []
        self.strides: list[tuple[int, int]] = []  # of results
        self.read: list[tuple[int, int]] = []  # strides of inputs

    def load(self, count: int, width: int) -> list[Element]:
        """Inputs that are blocks of rows of `width` blocks; 0 for a single row."""
        first = len(self.read)
        self.read += [self._stride(width)] * count
        return [Element(load(first + k, self.dtype)) for k in range(count)]

    def store(self, values: Sequence[Expr], width: int) -> None:
        self.results += [Result((each,)) for each in values]
        self.strides += [self._stride(width)] * len(values)

    def _stride(self, width: int) -> tuple[int, int]:
        return width * self.hidden * self.dtype.itemsize, self.dtype.itemsize

    def launch(self) -> Launch:
        sizes, strides = loop_dims((self.rows, self.hidden), (*self.strides, *self.read))
        return CPU.backend.prepare(self.results, [self.dtype] * len(self.read), [], sizes, strides)


def _forward(kind: Kind, dtype: DType, rows: int, hidden: int, biased: bool, saving: bool) -> Launch:
    """Results: the next state, the hidden state again; if `saving`, what was joined, and the old state.

    Inputs: what the input and the hidden state add to the gates, their biases if `biased`, the state.
    """
    blocks = _Blocks(dtype, rows, hidden)
    projected = blocks.load(kind.n_gates, kind.n_gates)
    own = blocks.load(kind.n_gates, kind.n_gates)
    if biased:
        projected, own = (
            [a + b for a, b in zip(each, blocks.load(kind.n_gates, 0), strict=True)]
            for each in (projected, own)
        )
    state = blocks.load(kind.n_states, 1)
    joined = kind.join(projected, own)
    after = kind.update(joined, state)
    blocks.store([each.expr for each in after], 1)
    blocks.store([after[0].expr], 1)
    if saving:
        blocks.store([each.expr for each in joined], kind.n_joined)
        blocks.store([each.expr for each in state], 1)
    return blocks.launch()


def _backward(kind: Kind, dtype: DType, rows: int, hidden: int) -> Launch:
    """Results: cotangents of what the input adds to the gates; of what the hidden state adds, if they differ; of the state.

    Inputs: the cotangent of the hidden state that came through the next product; of the next state; of the output; what
    was joined, and the old state.
    """
    blocks = _Blocks(dtype, rows, hidden)
    (through,) = blocks.load(1, 1)
    ct = [each.expr for each in blocks.load(kind.n_states, 1)]
    (of_output,) = blocks.load(1, 1)
    joined = blocks.load(kind.n_joined, kind.n_joined)
    state = blocks.load(kind.n_states, 1)
    ct[0] = ct[0] + through.expr + of_output.expr
    found = _pull(kind.update(joined, state), ct)
    # Joining adds up, or takes one of both: who joins an element gets its cotangent.
    sources = [Element(each.expr) for each in joined[:1] * (2 * kind.n_gates)]
    projected, own = sources[: kind.n_gates], sources[kind.n_gates :]
    for element, origin in zip(kind.join(projected, own), joined, strict=True):
        for each in element.inputs or (element,):
            found[each] = found[origin]
    blocks.store([found[each] for each in projected], kind.n_gates)
    if is_split(kind):
        blocks.store([found[each] for each in own], kind.n_gates)
    blocks.store([found.get(each, const(0.0, dtype)) for each in state], 1)
    return blocks.launch()


def is_split(kind: Kind) -> bool:
    """Whether the input and the hidden state add to different things, so that their cotangents differ."""
    return kind.n_joined > kind.n_gates


FORWARD = PlanCache(_forward)
BACKWARD = PlanCache(_backward)
