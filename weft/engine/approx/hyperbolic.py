"""Computes sinh, cosh, tanh and their inverses."""

from __future__ import annotations

from ...core.dtype import float32, float64
from ..expr import Expr, absolute, const, copysign, eq, fma, horner, one_function, select
from ..wide import Double, narrow, where, widen
from ..wide import sqrt as wide_sqrt
from .exponential import EXP, exp_parts, exp_reduce, exp_tail, power_of_two
from .extended import wide_log
from .floats import FORMAT, INF, NAN, clamp

# fmt: off
# (tanh(x) - x) / x**3 in x**2 on |x| <= 0.9, 2**-29.8 and 2**-64.2.
_TANH_END = 0.9
_TANH = {
    float32: (-0.0004554601, 0.002582668, -0.0082645435, 0.021663543, -0.053929303, 0.13332978, -0.33333322),
    float64: (3.557072132441985e-08, -3.3194877115769746e-07, 1.5829615837693801e-06, -5.347606914184117e-06,
              1.502645597540496e-05, -3.873124911186588e-05, 9.666067915117291e-05, -0.00023903932850678053,
              0.0005900036838663824, -0.0014558297420437752, 0.0035921273818076502, -0.008863235465795647,
              0.02186948853203659, -0.05396825396809545, 0.13333333333333022, -0.3333333333333333),
}
# (sinh(x) - x) / x**3 in x**2 on |x| <= 1, 2**-31.5 and 2**-62.9.
_SINH = {
    float32: (2.785975e-06, 0.00019842348, 0.008333312, 0.16666667),
    float64: (5.86889291941507e-15, 7.524981489681415e-13, 1.606103168397198e-10, 2.5052091588642983e-08,
              2.7557319302120527e-06, 0.00019841269841075094, 0.008333333333333564, 0.16666666666666666),
}
# fmt: on


def _odd(x: Expr, tail: tuple[float, ...]) -> Expr:
    z = x * x
    return fma(x * z, horner(z, tail), x)


@one_function
def tanh(x: Expr) -> Expr:
    """A polynomial for small |x|, else 1 - 2 / (exp(2|x|) + 1), whose quotient is so small that its errors need no correction."""
    size = absolute(x)
    marked, _, r = exp_reduce(clamp(size * 2, 0.0, 1.5 * FORMAT[x.dtype].mantissa))
    scale = power_of_two(marked)
    y = 1.0 - 2.0 / fma(scale, exp_tail(r), scale + 1.0)
    return copysign(select(size < _TANH_END, _odd(x, _TANH[x.dtype]), y), x)


def _half_exp(x: Expr) -> tuple[Double, Expr]:
    """exp(|x|) / 2 and exp(-|x|) / 2, of which the first may need one more factor of 2**64 to be in range."""
    marked, power = exp_parts(clamp(absolute(x), 0.0, EXP[x.dtype].high + 1))
    scale = power_of_two(marked - 65)
    return Double(power.high * scale, power.low * scale), 2.0**-66 / (power.high * scale)


@one_function
def sinh(x: Expr) -> Expr:
    grown, shrunk = _half_exp(x)
    y = (grown.high - (shrunk * 2.0**-64 - grown.low)) * 2.0**64
    return select(absolute(x) < 1, _odd(x, _SINH[x.dtype]), copysign(y, x))


@one_function
def cosh(x: Expr) -> Expr:
    grown, shrunk = _half_exp(x)
    return (grown.high + (shrunk * 2.0**-64 + grown.low)) * 2.0**64


# Below this |x| the inverse hyperbolic functions are x to the last bit but one.
_TINY = {float32: 2.0**-13, float64: 2.0**-28}


@one_function
def asinh(x: Expr) -> Expr:
    """Compute log(|x| + sqrt(x**2 + 1))"""
    size = absolute(x)
    large = const(2.0**60, x.dtype) < size
    wide = widen(clamp(size, 0.0, 2.0**60))
    argument = where(large, widen(size * 2.0**-32), wide + wide_sqrt(wide * wide + 1.0))
    y = narrow(wide_log(argument, select(large, const(33.0, float64), 0.0)), x.dtype)
    y = select(size < INF, y, size)
    return select(size < _TINY[x.dtype], x, copysign(y, x))


@one_function
def acosh(x: Expr) -> Expr:
    """Compute log(x + sqrt((x - 1) (x + 1)))"""
    large = const(2.0**60, x.dtype) < x
    wide = widen(clamp(x, 1.0, 2.0**60))
    less = wide - 1.0
    argument = where(large, widen(x * 2.0**-32), wide + wide_sqrt(less * (wide + 1.0)))
    y = narrow(wide_log(argument, select(large, const(33.0, float64), 0.0)), x.dtype)
    y = select(x < INF, y, x)
    return select(x < 1, NAN, y)


@one_function
def atanh(x: Expr) -> Expr:
    """Compute log((1 + |x|) / (1 - |x|)) / 2"""
    size = absolute(x)
    wide = widen(select(size < 1, size, 0.0))
    y = narrow(wide_log((wide + 1.0) / (1.0 - wide)) * 0.5, x.dtype)
    y = select(size < _TINY[x.dtype], x, copysign(y, x))
    y = select(eq(size, 1), copysign(const(INF, x.dtype), x), y)
    return select(size <= 1, y, NAN)
