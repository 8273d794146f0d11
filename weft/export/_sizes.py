"""Numbers that differ from call to call while a program is traced: dynamic sizes, and what is computed from them.

A `SymbolicSize` knows its values in the two runs of the tracer (`_values.py`), the node that computes it, and, if it can
be told, its formula in the dynamic dimensions of the inputs. Comparisons with the same answer in both runs are noted as guards.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.size import Size
from ..fx.node import Node
from ..ops.tensor.symbolic import SymFloat, SymInt

if TYPE_CHECKING:
    from ._values import ValueTracer


class DataDependentError(RuntimeError):
    """The program asks for the elements of a tensor, to decide what to do next."""

    def __init__(self, what: str):
        super().__init__(
            f"{what} depends on the elements of a tensor, which differ from call to call. Use torch.where or torch.cond, "
            "or leave this part of the program out of what is exported"
        )


class SizesDiffer(RuntimeError):
    """The program takes a dynamic size for a constant, or decides by a comparison that does not hold for all sizes."""

    def __init__(self, message: str, guard: str | None = None):
        super().__init__(message)
        self.guard = guard


class _Symbolic:
    """What SymbolicSize and SymbolicFloat share."""

    first: Any  # the value in each of the two runs
    second: Any
    tracer: ValueTracer
    make: Callable[[], Node]  # adds the node to the graph, once
    formula: str | None
    from_elements: bool  # the number is an element of a tensor, so that nothing can be decided by it

    def __init__(
        self,
        first: Any,
        second: Any,
        tracer: ValueTracer,
        make: Callable[[], Node],
        formula: str | None = None,
        from_elements: bool = False,
    ) -> None:
        self.first, self.second, self.tracer = first, second, tracer
        self.make = functools.cache(make)
        self.formula, self.from_elements = formula, from_elements

    @property
    def node(self) -> Node:
        """The node of the graph that computes the number."""
        return self.make()

    def __fx_create_arg__(self, tracer: Any) -> Node:
        return self.make()

    def __repr__(self) -> str:
        return self.formula or f"a dynamic {'size' if isinstance(self, SymInt) else 'number'} ({self.first})"

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash(self.first)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def _constant(self, use: str) -> Any:
        if self.from_elements:
            raise DataDependentError(use)
        raise SizesDiffer(f"{use} takes the dynamic size {self!r} for the constant {self.first}")

    def __index__(self) -> int:
        return self._constant("an integer of Python's (range(size), a list's index, int(size))")

    def __int__(self) -> int:
        return self._constant("int()")

    def __float__(self) -> float:
        return self._constant("float()")

    def __bool__(self) -> bool:
        return computed(operator.ne, (self, 0))


class SymbolicSize(_Symbolic, SymInt):
    """A size that differs from call to call."""


class SymbolicFloat(_Symbolic, SymFloat):
    """A float that is computed from dynamic sizes, or an element of a tensor."""


SymbolicSize.__module__ = SymbolicFloat.__module__ = __name__


def is_symbolic(value: Any) -> bool:
    return isinstance(value, _Symbolic)


def as_shape(sizes: list[Any]) -> Size:
    """A torch.Size, some of whose sizes may be symbolic."""
    return tuple.__new__(Size, sizes)


# ---- Arithmetic ---------------------------------------------------------------------------------------------------------

_SIGNS = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%",
    operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip


def computed(function: Callable, operands: tuple) -> Any:
    """`function(*operands)`: a number of both runs, or a symbolic one if the runs disagree."""
    first = function(*(each.first if is_symbolic(each) else each for each in operands))
    second = function(*(each.second if is_symbolic(each) else each for each in operands))
    from_elements = any(is_symbolic(each) and each.from_elements for each in operands)
    formula = _formula(function, operands)
    tracer = next(each.tracer for each in operands if is_symbolic(each))
    if isinstance(first, bool):
        if from_elements:
            raise DataDependentError(f"a comparison ({function.__name__})")
        if first != second:
            shown = formula or f"{function.__name__} of {', '.join(map(repr, operands))}"
            raise SizesDiffer(
                f"the program decides by {shown}, which is {first} for the example inputs and {second} for other sizes",
                formula,
            )
        if formula is not None:
            tracer.guards.setdefault(formula if first else f"not {formula}")
        return first
    if first == second and not from_elements:
        return first
    kind = SymbolicSize if isinstance(first, int) else SymbolicFloat
    return kind(
        first,
        second,
        tracer,
        lambda: tracer.number_node(function, operands, first, second),
        formula,
        from_elements,
    )


def _formula(function: Callable, operands: tuple) -> str | None:
    sign = _SIGNS.get(function)
    parts = [
        each.formula if is_symbolic(each) else repr(each) if type(each) is int else None for each in operands
    ]
    if sign is None or len(parts) != 2 or None in parts:
        return None
    return f"{parts[0]} {sign} {parts[1]}" if function in _COMPARISONS else f"({parts[0]} {sign} {parts[1]})"


_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def _define(name: str, function: Callable, reflected: bool = False) -> None:
    def method(self: Any, *operands: Any) -> Any:
        if not all(isinstance(each, (int, float, _Symbolic)) for each in operands):
            return NotImplemented
        return computed(function, (*operands, self) if reflected else (self, *operands))

    setattr(_Symbolic, name, method)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _define(f"__{_name}__", getattr(operator, _name))
    _define(f"__r{_name}__", getattr(operator, _name), reflected=True)
for _name in ("neg", "abs", "eq", "ne", "lt", "le", "gt", "ge"):
    _define(f"__{_name}__", getattr(operator, _name))
for _name in ("floor", "ceil", "trunc"):
    _define(f"__{_name}__", getattr(math, _name))
_define("__round__", round)
_Symbolic.__hash__ = lambda self: hash(self.first)  # type: ignore[method-assign]  # __eq__ took it away
