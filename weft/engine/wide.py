"""Numbers with twice the precision, for intermediate results of functions that must be accurate to the last bit.

A float32 is widened to a float64 expression, a float64 to a `Double`, the unevaluated sum of two: both know
+ - * /, so that a formula is written once for both types.
Source: Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971), and
Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building blocks of double-word arithmetic",
ACM TOMS 44 (2017).
"""

from __future__ import annotations

from typing import Any

from ..core.dtype import DType, float32, float64
from .expr import Expr, as_expr, cast, eq, fma, select
from .expr import sqrt as _sqrt


class Double:
    """high + low, where |low| is at most about half an ulp of high; no low means exactly zero."""

    __slots__ = ("high", "low")

    def __init__(self, high: Expr, low: Any = None):
        self.high, self.low = high, low

    def __add__(self, other: Any) -> Double:
        other = self._lift(other)
        total, error = two_sum(self.high, other.high)
        return fast_two_sum(total, _plus(error, self.low, other.low))

    __radd__ = __add__

    def __neg__(self) -> Double:
        return Double(-self.high, None if self.low is None else -self.low)

    def __sub__(self, other: Any) -> Double:
        return self + -self._lift(other)

    def __rsub__(self, other: Any) -> Double:
        return -self + other

    def __mul__(self, other: Any) -> Double:
        other = self._lift(other)
        product = self.high * other.high
        error = fma(self.high, other.high, -product)
        if other.low is not None:
            error = fma(self.high, other.low, error)
        if self.low is not None:
            error = fma(self.low, other.high, error)
        return fast_two_sum(product, error)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Double:
        other = self._lift(other)
        inverse = 1.0 / other.high
        quotient = self.high * inverse
        rest = _plus(fma(-quotient, other.high, self.high), self.low)
        if other.low is not None:
            rest = fma(-quotient, other.low, rest)
        return fast_two_sum(quotient, rest * inverse)

    def __rtruediv__(self, other: Any) -> Double:
        return self._lift(other) / self

    def _lift(self, other: Any) -> Double:
        return other if isinstance(other, Double) else Double(as_expr(other, self.high))


def _plus(first: Expr, *rest: Expr | None) -> Expr:
    for term in rest:
        first = first if term is None else first + term
    return first


def two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return the rounded sum and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def fast_two_sum(a: Expr, b: Expr) -> Double:
    """Return the sum of a and b, |a| >= |b| or a = 0, as a Double."""
    total = a + b
    return Double(total, b - (total - a))


Wide = Expr | Double


def widen(x: Expr) -> Wide:
    return cast(x, float64) if x.dtype is float32 else Double(x)


def narrow(x: Wide, dtype: DType) -> Expr:
    """Rounded to the type it was widened from."""
    if isinstance(x, Double):
        return x.high if x.low is None else x.high + x.low
    return cast(x, dtype)


def leading(x: Wide) -> Expr:
    """Compute x to the precision of float64."""
    return x.high if isinstance(x, Double) else x


def constant(high: float, low: float, like: Wide) -> Wide:
    """high + low; a float64 alone needs only the first."""
    if isinstance(like, Double):
        return Double(as_expr(high, like.high), as_expr(low, like.high))
    return as_expr(high, like)


def where(condition: Expr, a: Any, b: Any) -> Any:
    """`select` for two numbers of either kind."""
    if isinstance(a, Expr):
        return select(condition, a, b)
    return Double(select(condition, a.high, b.high), select(condition, _low(a), _low(b)))


def _low(x: Double) -> Expr:
    return as_expr(0.0, x.high) if x.low is None else x.low


def sqrt(x: Any) -> Any:
    if not isinstance(x, Double):
        return _sqrt(x)
    root = _sqrt(x.high)
    rest = _plus(fma(-root, root, x.high), x.low)
    return Double(root, select(eq(root, 0), 0.0, rest / (root + root)))
