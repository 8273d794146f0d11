"""One kernel for the derivative of an elementwise op.

A rule is written with tensors. When nothing records it, it is run once on symbols instead, which build the expression of
one element; the expression becomes a kernel of its own, and what would be several passes over memory is one. When it
is recorded, for a derivative of higher order, the rule runs on tensors as it stands. The bits are the same: in the
narrow floats each operation is rounded, unless the rule is said to be computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.derivative import loaded, mentioned
from ..core.dtype import DType, bool_, float32
from ..core.tensor import Tensor
from ..engine import scalar as s
from ..engine.convert import convert
from ..engine.expr import load
from .elements import rounded
from .map import Map, Types, keep, keyed

# Methods of tensors that symbols have under the same name, one operand each.
_FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh sigmoid erf erfc floor ceil trunc sign sgn isnan isinf isfinite"
).split()


class NoKernel(Exception):
    """A rule does something that symbols cannot: it stays as it is."""


class Symbol:
    """Stands for the elements of a real tensor, or for a number, while a rule is traced."""

    __slots__ = ("expr", "dtype", "steps")

    def __init__(self, expr: s.Expr, dtype: DType, steps: int = 0):
        self.expr = expr
        self.dtype = dtype  # what operations round to
        self.steps = steps  # how many operations it took

    def __bool__(self) -> bool:
        raise NoKernel("the truth of a value")

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name not in _FUNCTIONS:
            raise NoKernel(name)
        return lambda: _rounded(getattr(s, name)(_number(self)), self)

    # fmt: off
    def __add__(self, other): return _arithmetic(lambda a, b: a + b, self, other)
    def __radd__(self, other): return _arithmetic(lambda a, b: a + b, other, self)
    def __sub__(self, other): return _arithmetic(lambda a, b: a - b, self, other)
    def __rsub__(self, other): return _arithmetic(lambda a, b: a - b, other, self)
    def __mul__(self, other): return _arithmetic(lambda a, b: a * b, self, other)
    def __rmul__(self, other): return _arithmetic(lambda a, b: a * b, other, self)
    def __truediv__(self, other): return _arithmetic(lambda a, b: a / b, self, other)
    def __rtruediv__(self, other): return _arithmetic(lambda a, b: a / b, other, self)
    def __neg__(self): return _made(-_number(self), self)
    def __abs__(self): return _made(s.absolute(_number(self)), self)
    def __lt__(self, other): return _arithmetic(lambda a, b: a < b, self, other)
    def __le__(self, other): return _arithmetic(lambda a, b: a <= b, self, other)
    def __gt__(self, other): return _arithmetic(lambda a, b: b < a, self, other)
    def __ge__(self, other): return _arithmetic(lambda a, b: b <= a, self, other)
    def __eq__(self, other): return _arithmetic(s.eq, self, other)
    def __ne__(self, other): return _arithmetic(s.ne, self, other)
    def __and__(self, other): return _made(_flag(self) & _flag(other), self, other)
    def __or__(self, other): return _made(_flag(self) | _flag(other), self, other)
    def __invert__(self): return _made(~_flag(self), self)
    # fmt: on

    abs = __abs__
    neg = __neg__
    logical_not = __invert__

    def __pow__(self, exponent: Any) -> Symbol:
        if type(exponent) in (int, float) and exponent == 2:
            return self * self
        return _arithmetic(s.pow, self, exponent)

    pow = __pow__

    def conj(self) -> Symbol:
        return self

    def is_complex(self) -> bool:
        return False

    def where(self, condition: Any, other: Any) -> Symbol:
        """As `Tensor.where`: this where the condition holds, else the other."""
        value, rest = _alike(self, other)
        return _made(s.where(_flag(condition), value, rest), self, condition, other)

    def masked_fill(self, mask: Any, value: Any) -> Symbol:
        own, filled = _alike(self, value)
        return _made(s.where(_flag(mask), filled, own), self, mask, value)


def _made(expr: s.Expr, *parents: Any) -> Symbol:
    """The result of an operation that is exact."""
    symbols = [each for each in parents if isinstance(each, Symbol)]
    return Symbol(expr, symbols[0].dtype, 1 + sum(each.steps for each in symbols))


def _rounded(expr: s.Expr, *parents: Any) -> Symbol:
    made = _made(expr, *parents)
    if expr.dtype is not bool_:
        made.expr = rounded(expr, made.dtype)
    return made


def _number(value: Symbol) -> s.Expr:
    if value.expr.dtype is bool_:
        raise NoKernel("arithmetic with a mask alone")
    return value.expr


def _flag(value: Any) -> s.Expr:
    if not isinstance(value, Symbol) or value.expr.dtype is not bool_:
        raise NoKernel("a condition that is no comparison")
    return value.expr


def _alike(a: Any, b: Any) -> tuple[s.Expr, s.Expr]:
    """Two operands as expressions of one dtype; masks count as 0 and 1, numbers are constants."""
    dtypes = {x.expr.dtype for x in (a, b) if isinstance(x, Symbol) and x.expr.dtype is not bool_}
    if len(dtypes) != 1:
        raise NoKernel("operands of several dtypes")
    (dtype,) = dtypes
    found = []
    for x in (a, b):
        if isinstance(x, Symbol):
            found.append(convert(x.expr, dtype))
        elif type(x) in (int, float):
            found.append(s.const(float(x), dtype))
        else:
            raise NoKernel(type(x).__name__)
    return found[0], found[1]


def _arithmetic(function: Callable, a: Any, b: Any) -> Symbol:
    x, y = _alike(a, b)
    return _rounded(function(x, y), a, b)


class _Rule(Map):
    """The kernel of a rule: its operands are the arguments that the rule mentions."""

    def __init__(self, name: str, rule: Callable, positions: Sequence[int], at_once: bool):
        super().__init__(f"{name}_backward", keep, rule, wide=True)
        self.positions = positions
        self.at_once = at_once

    def traced(self, values: Sequence[s.Expr], dtype: DType) -> Any:
        arguments: list[Any] = [None] * self.element.__code__.co_argcount
        for position, value in zip(self.positions, values, strict=True):
            arguments[position] = Symbol(value, value.dtype if self.at_once else dtype)
        return self.element(*arguments)

    def _computed(self, values: Sequence[Any], types: Types) -> Any:
        return self.traced(values, types.operands).expr


def fused(name: str, rule: Callable, at_once: bool) -> Callable:
    """`rule` of an elementwise op as one kernel, for real operands of one dtype; itself where there is nothing to gain."""
    positions = _mentioned(rule)
    if not positions or positions[0] != 0:
        return rule
    kernel = _Rule(name, rule, positions, at_once)
    try:
        probe = kernel.traced([load(position, float32) for position in positions], float32)
    except (NoKernel, TypeError, AttributeError, NotImplementedError):
        return rule
    if not isinstance(probe, Symbol) or probe.steps < 2:
        return rule

    def operands_of(values: Sequence[Any]) -> list | None:
        """What the kernel is called with; None for what it does not compute."""
        dtype = values[0].spec.dtype
        operands = []
        for position in positions:
            value = values[position]
            if isinstance(value, Tensor):
                if value.spec.dtype is not dtype:
                    return None
            elif type(value) is not float and type(value) is not int:
                return None
            operands.append(value)
        return None if dtype.is_complex else operands

    def apply(*values: Any) -> Any:
        operands = operands_of(values)
        return rule(*values) if operands is None else kernel(*operands)

    def over(*values: Any) -> Any:
        """`apply` into the memory of the first operand, if that is what the result looks like."""
        operands = operands_of(values)
        if operands is None or kernel.plans[keyed(kernel.name, operands)[1]].spec is not values[0].spec:
            return apply(*values)
        return kernel.write(values[0], *operands)

    apply.over = over  # type: ignore[attr-defined]
    return apply


def _mentioned(rule: Callable) -> list[int]:
    """The arguments that a rule mentions; none if it takes others than ct, out and the inputs."""
    code = rule.__code__
    if code.co_kwonlyargcount or code.co_flags & 0x04:
        return []
    out, inputs = mentioned(rule, code.co_argcount - 2)
    first = [0] if code.co_varnames[0] in loaded(code) else []
    return first + [1] * out + sorted(position + 2 for position in inputs)


Map.fuse = staticmethod(fused)
