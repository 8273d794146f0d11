"""What kernels compute, as text: `exp(2 - a) * 0.5 + a`."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.spec import Spec
from ..engine.expr import Expr, postorder
from ..families.kernel_graph import GraphBuilder, KernelGraph
from .words import of_value

_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2)}


class Formula(NamedTuple):
    """Text, and how tight its outermost operator binds; 3 if it has none."""

    text: str
    binding: int = 3

    def inside(self, binding: int) -> str:
        """The text as an operand of an operator."""
        return self.text if self.binding >= binding else f"({self.text})"


def letter(place: int) -> str:
    """The name of an operand: a, b, ..., z, a1, ..."""
    rounds, place = divmod(place, 26)
    return string.ascii_lowercase[place] + (str(rounds) if rounds else "")


def infix(name: str, operands: Sequence[Formula]) -> Formula:
    """The call of an operation with these operands."""
    if name in _INFIX and len(operands) == 2:
        sign, binding = _INFIX[name]
        return Formula(f"{operands[0].inside(binding)} {sign} {operands[1].inside(binding + 1)}", binding)
    if name == "neg":
        return Formula(f"-{operands[0].inside(2)}", 2)
    return Formula(f"{name}({', '.join(each.text for each in operands)})")


def of_step(name: str, parts: tuple[Expr, ...], leaf: Callable[[Expr], Formula]) -> Formula:
    """What an elementwise operation computes. `leaf` says what stands for a load or a number."""
    leaves: dict[tuple[bool, int], Expr] = {}
    for each in postorder(parts):
        if each.op in ("load", "param"):
            place = each.value[0] if type(each.value) is tuple else each.value
            leaves.setdefault((each.op == "param", place), each)
    operands = [leaves[key] for key in sorted(leaves)]  # tensors before numbers
    if name in _INFIX and len(parts) == 1:
        in_order = [_bare(each) for each in _bare(parts[0]).args]
        if all(each in operands for each in in_order):
            operands = in_order
    return infix(name, [leaf(each) for each in operands])


def _bare(expr: Expr) -> Expr:
    """Without the conversions of dtypes around it."""
    while expr.op == "cast":
        (expr,) = expr.args
    return expr


class Chain:
    """The formulas of operations that read each other's results, with letters for what they read from memory."""

    def __init__(self) -> None:
        self.operands: dict[Any, tuple[str, Spec]] = {}  # by the storage, the offset and the spec
        self._known: dict[int, Formula] = {}  # by the id of the promise

    def add(self, step: Any) -> Formula:
        """The formula of a step of a deferred chain (`_Work` in `engine/defer.py`)."""
        deferred = step.plan.deferred

        def leaf(expr: Expr) -> Formula:
            if expr.op == "param":
                return of_number(step.numbers[expr.value])
            place = expr.value[0] if type(expr.value) is tuple else expr.value
            source, spec = step.sources[place], deferred.operands[place]
            if id(source) in self._known:
                return self._known[id(source)]
            key = (id(source), step.offsets[place], spec)
            if key not in self.operands:
                self.operands[key] = letter(len(self.operands)), spec
            return Formula(self.operands[key][0])

        found = self._known[id(step.promise)] = of_step(deferred.name, deferred.parts, leaf)
        return found


def of_number(value: Any) -> Formula:
    text = of_value(float(value) if isinstance(value, float) and not value.is_integer() else value)
    return Formula(text.removesuffix("."), 3 if not text.startswith("-") else 2)


class _Steps(GraphBuilder):
    """Plans a kernel graph, and notes the names of its steps."""

    def __init__(self, specs: Sequence[Spec | None], numbers: Sequence[type]) -> None:
        super().__init__(specs, numbers)
        self.names: list[str] = []

    def scatter(self, *operands: Any, **options: Any) -> None:
        self.names.append("scatter")
        super().scatter(*operands, **options)

    def launch(self, *operands: Any) -> None:
        self.names.append("kernel")
        super().launch(*operands)


def _noting(method: str) -> Callable:
    inherited = getattr(GraphBuilder, method)

    def noted(self: _Steps, op: Any, *operands: Any, **options: Any) -> Any:
        self.names.append(op.name)
        return inherited(self, op, *operands, **options)

    return noted


for _method in ("map", "write", "reduce", "matmul", "gather"):
    setattr(_Steps, _method, _noting(_method))


def steps_of(graph: KernelGraph, inputs: Sequence[Any], static: Sequence[Any] = (), *_: Any) -> list[str]:
    """The names of the kernels of a kernel graph for these inputs, in their order."""
    builder = _Steps([None if each is None else each.spec for each in inputs], graph.numbers)
    graph.build(builder, *static)
    return builder.names
