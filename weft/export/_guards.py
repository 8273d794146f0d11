"""What an exported program asks of its inputs: sizes, bounds of dynamic dimensions, constants, and comparisons of sizes."""

from __future__ import annotations

import ast
import dataclasses
import operator
from typing import Any

from ..core.tensor import Tensor
from ..nn import Module

UNBOUNDED = 2**63 - 1

_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def evaluated(formula: str, sizes: dict[str, int]) -> Any:
    """The value of a formula of sizes: names, whole numbers, `+ - * // %`, one comparison, `not`.

    >>> evaluated("(2 * batch + 1) > 4", {"batch": 2})
    True
    """

    def value(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return sizes[name]
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](value(left), value(right))
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](value(left), value(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not value(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
        raise ValueError(f"{formula!r} is no formula of sizes")

    return value(ast.parse(formula, mode="eval").body)


def bounds_of(guard: str, name: str) -> tuple[int, int] | None:
    """The sizes of `name` that a guard allows, if it compares just this size with a number, by order.

    >>> bounds_of("not b > 5", "b"), bounds_of("b >= 3", "b"), bounds_of("b == 3", "b")
    ((0, 5), (3, 9223372036854775807), None)
    """
    tree: ast.AST = ast.parse(guard, mode="eval").body
    negated = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)
    if isinstance(tree, ast.UnaryOp) and negated:
        tree = tree.operand
    match tree:
        case ast.Compare(
            left=ast.Name(id=own), ops=[sign], comparators=[ast.Constant(value=int(number))]
        ) if own == name:
            kind = type(sign)
        case _:
            return None
    opposite = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt}
    if kind not in opposite:
        return None
    kind = opposite[kind] if negated else kind
    return {
        ast.Lt: (0, number - 1),
        ast.LtE: (0, number),
        ast.Gt: (number + 1, UNBOUNDED),
        ast.GtE: (number, UNBOUNDED),
    }[kind]


@dataclasses.dataclass
class Size:
    """The sizes that a dimension may have."""

    lower: int
    upper: int

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper == UNBOUNDED else self.upper}]"


class SizeName(str):
    """The name of a dynamic dimension. It prints without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


@dataclasses.dataclass
class Check:
    """What is known of one leaf of the inputs: the sizes of a tensor, with formulas for dynamic ones, or a constant."""

    source: str
    sizes: list[Any] | None
    value: Any = None


class GuardsFn(Module):
    """Checks that the inputs of an exported program have the sizes that it was exported for."""

    __module__ = "torch.export._unlift"

    def __init__(self, checks: list[Check], ranges: dict[Any, Size], guards: list[str]):
        super().__init__()
        self._checks, self._ranges, self._comparisons = checks, ranges, guards

    def forward(self, *inputs: Any) -> None:
        found: dict[str, int] = {}
        formulas: list[tuple[str, int, str]] = []
        for check, value in zip(self._checks, inputs, strict=True):
            if check.sizes is None:
                _check_constant(check, value)
                continue
            if not isinstance(value, Tensor):
                raise AssertionError(f"Guard failed: {check.source} is a tensor, not {type(value).__name__}")
            if value.dim() != len(check.sizes):
                raise AssertionError(
                    f"Guard failed: {check.source}.dim() == {len(check.sizes)} (it is {value.dim()})"
                )
            for dim, (size, wanted) in enumerate(zip(value.shape, check.sizes, strict=True)):
                place = f"{check.source}.size()[{dim}]"
                if isinstance(wanted, str) and not wanted.isidentifier():
                    formulas.append((place, size, wanted))
                else:
                    self._check_size(place, size, wanted, found)
        for place, size, formula in formulas:
            self._check_formula(place, size, formula, found)
        for guard in self._comparisons:
            names = {node.id for node in ast.walk(ast.parse(guard)) if isinstance(node, ast.Name)}
            if names <= set(found) and not evaluated(guard, found):
                sizes = ", ".join(f"{name} is {found[name]}" for name in sorted(names))
                raise AssertionError(
                    f"Guard failed: {guard} ({sizes}): the program was exported for sizes for which this holds"
                )

    def _check_size(self, name: str, size: int, wanted: Any, found: dict[str, int]) -> None:
        if isinstance(wanted, int):
            if size != wanted:
                raise AssertionError(f"Guard failed: {name} == {wanted} (it is {size})")
            return
        if found.setdefault(wanted, size) != size:
            raise AssertionError(f"Guard failed: {name} == {wanted} == {found[wanted]} (it is {size})")
        bounds = self._ranges.get(wanted)
        if bounds is not None and not bounds.lower <= size <= bounds.upper:
            raise AssertionError(
                f"Guard failed: {name} is between {bounds.lower} and {bounds.upper} (it is {size})"
            )

    def _check_formula(self, name: str, size: int, formula: str, found: dict[str, int]) -> None:
        """A derived dimension, `2*batch + 1`: it agrees with its root, or tells the size of the root."""
        (root,) = {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)}
        if root not in found:
            base = evaluated(formula, {root: 0})
            slope = evaluated(formula, {root: 1}) - base
            found[root] = (size - base) // slope
        if evaluated(formula, found) != size:
            raise AssertionError(
                f"Guard failed: {name} == {formula} == {evaluated(formula, found)} (it is {size})"
            )


def _check_constant(check: Check, value: Any) -> None:
    if check.value is None and isinstance(value, Tensor):
        return  # PyTorch does not look at arguments that were None
    if value is not check.value and value != check.value:
        raise AssertionError(f"Guard failed: {check.source} == {check.value!r} (it is {value!r})")
