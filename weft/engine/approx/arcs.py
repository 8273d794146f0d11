"""Computes asin, acos, atan, atan2 and hypot."""

from __future__ import annotations

import math

from ...core.dtype import float32, float64, int64
from ..expr import (
    Expr,
    absolute,
    bitcast,
    cast,
    const,
    copysign,
    eq,
    fma,
    horner,
    int_like,
    isnan,
    one_function,
    select,
    sqrt,
)
from ..wide import Double, constant, fast_two_sum, leading, narrow, where, widen
from ..wide import sqrt as wide_sqrt
from .circular import PI_2
from .floats import INF, NAN, clamp, nearest_float

# fmt: off
# (asin(x) - x) / x**3 in x**2 on |x| <= 1/2, 2**-31.7 and 2**-63.6.
_ASIN = {
    float32: (0.037594177, 0.01437889, 0.03182503, 0.044514634, 0.07500518, 0.1666666),
    float64: (0.03365290877414318, -0.026160379744969185, 0.024830618772179704, 0.0006823653911502287,
              0.010009000625552163, 0.009484251916866892, 0.011585627855719169, 0.013961911189629118,
              0.01735294243049, 0.0223721517541586, 0.030381944639292682, 0.04464285713980518,
              0.07500000000002396, 0.1666666666666666),
}
# (atan(x) - x) / x**3 in x**2 on |x| <= tan(pi/8), 2**-30.5 and 2**-63.5; for float32 through float64, 2**-35.4.
_ATAN = {
    float32: (-0.06092616, 0.106001414, -0.14244509, 0.19998533, -0.33333316),
    float64: (0.015108711226718368, -0.0333829525598818, 0.04499302659602162, -0.05217269375694496,
              0.05876828877641285, -0.0666620502774, 0.0769228111988274, -0.09090908062847533,
              0.11111111085587803, -0.14285714285339526, 0.19999999999997206, -0.33333333333333326),
}
_ATAN_SHORT = (0.047472914078448246, -0.0847792100009797, 0.11045004101971642, -0.14282034521959236,
               0.199999049033059, -0.333333325110016)
# fmt: on
_TAN_PI_8, _TAN_3PI_8 = math.sqrt(2) - 1, math.sqrt(2) + 1


def _asin_halves(x: Expr) -> tuple[Expr, Double, Expr]:
    """Return whether |x| > 1/2; a = |x|, or sqrt((1 - |x|) / 2) if so; and asin(a) - a."""
    size = absolute(x)
    large = const(0.5, x.dtype) < size
    z = select(large, fma(size, -0.5, 0.5), x * x)
    root = wide_sqrt(Double(z))
    a = where(large, root, Double(size))
    return large, a, a.high * z * horner(z, _ASIN[x.dtype])


@one_function
def asin(x: Expr) -> Expr:
    """Compute asin(x), by pi/2 - 2 asin(sqrt((1 - |x|) / 2)) for large |x|."""
    large, a, tail = _asin_halves(x)
    high, low = nearest_float(*PI_2[:2], x.dtype)
    reflected = Double(const(high, x.dtype)) - a * 2.0
    reflected = reflected.high + (reflected.low + fma(tail, -2.0, low))
    return copysign(select(large, reflected, a.high + tail), x)


@one_function
def acos(x: Expr) -> Expr:
    large, a, tail = _asin_halves(x)
    half_pi = Double(*(const(part, x.dtype) for part in nearest_float(*PI_2[:2], x.dtype)))
    negative = x < 0
    # asin(x) is x + tail; beyond 1/2 acos(x) is 2 (a + tail), or pi less that.
    sign = select(negative, const(-1.0, x.dtype), 1.0)
    near = half_pi - a * sign
    far = where(negative, half_pi * 2.0, Double(const(0.0, x.dtype))) + a * (sign * 2.0)
    y = where(large, far, near)
    return y.high + (y.low + tail * select(large, sign * 2.0, -sign))


@one_function
def atan(x: Expr) -> Expr:
    # Beyond this size, the result is pi/2 all the same, and infinity has no quotient.
    size = clamp(absolute(x), 0.0, 2.0**60)
    middle, far = const(_TAN_PI_8, x.dtype) < size, const(_TAN_3PI_8, x.dtype) < size
    less, more = Double(size) - 1.0, Double(size) + 1.0
    one = Double(const(1.0, x.dtype))
    numerator = where(middle, where(far, -one, less), Double(size))
    denominator = where(middle, where(far, Double(size), more), one)
    base = select(middle, select(far, const(2.0, x.dtype), 1.0), 0.0)
    return copysign(_atan_sum(numerator / denominator, base), x)


def _atan_sum(q: Double, eighths: Expr) -> Expr:
    """Compute eighths pi/4 + atan(q), |q| <= tan(pi/8)."""
    dtype = eighths.dtype
    z = q.high * q.high
    tail = fma(q.high * z, horner(z, _ATAN[dtype]), q.low)
    high, low = nearest_float(PI_2[0] / 2, PI_2[1] / 2, dtype)
    total = fast_two_sum(eighths * high, q.high)
    return total.high + (total.low + fma(eighths, low, tail))


@one_function
def atan2(y: Expr, x: Expr) -> Expr:
    if x.dtype is float64:
        y, x = _scale_pair(y, x)
    rise, run = widen(absolute(y)), widen(absolute(x))
    steep = leading(run) < leading(rise)
    less, more = where(steep, run, rise), where(steep, rise, run)
    both_infinite = eq(leading(less), INF)
    tilted = const(_TAN_PI_8, float64) * leading(more) < leading(less)
    one = constant(1.0, 0.0, rise)
    numerator = where(tilted, less - more, less)
    denominator = where(tilted, less + more, more)
    numerator = where(both_infinite, one - one, numerator)
    denominator = where(both_infinite | eq(leading(denominator), 0), one, denominator)
    # The angle is eighths pi/4 + sign atan(q), in the quadrant that the signs of x and y say.
    eighths = select(tilted | both_infinite, const(1.0, float64), 0.0)
    sign = select(steep, const(-1.0, float64), 1.0)
    eighths = select(steep, 2.0 - eighths, eighths)
    left = bitcast(x, int_like(x)) < 0
    eighths, sign = select(left, 4.0 - eighths, eighths), select(left, -sign, sign)
    q = numerator / denominator
    if isinstance(q, Double):
        q = where(eq(leading(more), INF) & ~both_infinite, one - one, q)
        angle = _atan_sum(q * sign, eighths)
    else:
        z = q * q
        angle = cast(fma(fma(q * z, horner(z, _ATAN_SHORT), q), sign, eighths * (PI_2[0] / 2)), x.dtype)
    angle = select(isnan(x) | isnan(y), const(NAN, x.dtype), angle)
    return copysign(angle, y)


def _scale_pair(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both times the power of two that makes the larger one about 1."""
    size = larger(a, b)
    exponent = bitcast(size, int64) & (0x7FF << 52)
    factor = bitcast(select(size < 2.0**1020, const(2046 << 52, int64) - exponent, 3 << 52), float64)
    return a * factor, b * factor


@one_function
def larger(a: Expr, b: Expr) -> Expr:
    """Return the larger absolute value."""
    return select(absolute(a) < absolute(b), absolute(b), absolute(a))


def _hypot_factor(a: Expr, b: Expr) -> Expr:
    size = larger(a, b)
    factor = select(size < 2.0**-400, const(2.0**600, float64), 1.0)
    return select(const(2.0**400, float64) < size, const(2.0**-600, float64), factor)


@one_function
def hypot(a: Expr, b: Expr) -> Expr:
    infinite = eq(absolute(a), INF) | eq(absolute(b), INF)
    if a.dtype is float32:
        wide_a, wide_b = cast(a, float64), cast(b, float64)
        y = cast(sqrt(fma(wide_a, wide_a, wide_b * wide_b)), float32)
    else:
        factor = _hypot_factor(a, b)
        scaled_a, scaled_b = Double(a * factor), Double(b * factor)
        y = narrow(wide_sqrt(scaled_a * scaled_a + scaled_b * scaled_b), float64) * (1.0 / factor)
    return select(infinite, const(INF, a.dtype), y)
