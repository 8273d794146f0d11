"""sinh, cosh, tanh and their inverses."""

from __future__ import annotations

from ...core.dtype import float32, float64
from ..expr import Expr, absolute, const, copysign, eq, fma, horner, select
from ..wide import Double, fast_two_sum, narrow, where, widen
from ..wide import sqrt as wide_sqrt
from .exponential import EXP, exp_parts, power_of_two
from .extended import wide_log
from .floats import FORMAT, INF, NAN, clamp

# fmt: off
# (tanh(x) - x) / x**3 in x**2 on |x| <= 0.56, 2**-29.6 and 2**-64.8.
_TANH = {
    float32: (-0.0062174737, 0.0210355, -0.053844694, 0.13332528, -0.33333316),
    float64: (7.255156974252813e-06, -3.262431776982643e-05, 9.370412522989423e-05, -0.0002380979610785382,
              0.0005898006066672897, -0.0014557998824247334, 0.0035921244334857156, -0.008863235277859871,
              0.021869488524884333, -0.05396825396795726, 0.1333333333333294, -0.3333333333333333),
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


def tanh(x: Expr) -> Expr:
    """1 - 2 / (exp(2|x|) + 1), the sum and the quotient with their errors; a polynomial for small |x|."""
    size = absolute(x)
    marked, power = exp_parts(clamp(size * 2, 0.0, 1.5 * FORMAT[x.dtype].mantissa))
    scale = power_of_two(marked)
    total = fast_two_sum(power.high * scale, const(1.0, x.dtype))
    half = 1.0 / total.high
    quotient = half + half
    excess = fma(quotient, total.high, -2.0) + quotient * (total.low + power.low * scale)
    y = 1.0 - fma(-excess, half, quotient)
    return copysign(select(size < 0.55, _odd(size, _TANH[x.dtype]), y), x)


def _half_exp(x: Expr) -> tuple[Double, Expr]:
    """exp(|x|) / 2 and exp(-|x|) / 2, of which the first may need one more factor of 2**64 to be in range."""
    marked, power = exp_parts(clamp(absolute(x), 0.0, EXP[x.dtype].high + 1))
    scale = power_of_two(marked - 65)
    return Double(power.high * scale, power.low * scale), 2.0**-66 / (power.high * scale)


def sinh(x: Expr) -> Expr:
    grown, shrunk = _half_exp(x)
    y = (grown.high - (shrunk * 2.0**-64 - grown.low)) * 2.0**64
    return select(absolute(x) < 1, _odd(x, _SINH[x.dtype]), copysign(y, x))


def cosh(x: Expr) -> Expr:
    grown, shrunk = _half_exp(x)
    return (grown.high + (shrunk * 2.0**-64 + grown.low)) * 2.0**64


# Below this |x| the inverse hyperbolic functions are x to the last bit but one.
_TINY = {float32: 2.0**-13, float64: 2.0**-28}


def asinh(x: Expr) -> Expr:
    """log(|x| + sqrt(x**2 + 1))"""
    size = absolute(x)
    large = const(2.0**60, x.dtype) < size
    wide = widen(clamp(size, 0.0, 2.0**60))
    argument = where(large, widen(size * 2.0**-32), wide + wide_sqrt(wide * wide + 1.0))
    y = narrow(wide_log(argument, select(large, const(33.0, float64), 0.0)), x.dtype)
    y = select(size < INF, y, size)
    return select(size < _TINY[x.dtype], x, copysign(y, x))


def acosh(x: Expr) -> Expr:
    """log(x + sqrt((x - 1) (x + 1)))"""
    large = const(2.0**60, x.dtype) < x
    wide = widen(clamp(x, 1.0, 2.0**60))
    less = wide - 1.0
    argument = where(large, widen(x * 2.0**-32), wide + wide_sqrt(less * (wide + 1.0)))
    y = narrow(wide_log(argument, select(large, const(33.0, float64), 0.0)), x.dtype)
    y = select(x < INF, y, x)
    return select(x < 1, NAN, y)


def atanh(x: Expr) -> Expr:
    """log((1 + |x|) / (1 - |x|)) / 2"""
    size = absolute(x)
    wide = widen(select(size < 1, size, 0.0))
    y = narrow(wide_log((wide + 1.0) / (1.0 - wide)) * 0.5, x.dtype)
    y = select(size < _TINY[x.dtype], x, copysign(y, x))
    y = select(eq(size, 1), copysign(const(INF, x.dtype), x), y)
    return select(size <= 1, y, NAN)
