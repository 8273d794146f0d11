"""exp and log in more bits than the result has."""

from __future__ import annotations

import math

from ...core.dtype import DType, float64, int64
from ..expr import Expr, bitcast, cast, const, eq, fma, horner, isnan, one_function, select
from ..wide import Double, Wide, fast_two_sum, leading, narrow
from .exponential import EXP, exp_reduce, one_plus, power_of_two, scaled
from .floats import FORMAT, INF, bits64, clamp, split_float
from .logarithm import LN2, split_exponent

# fmt: off
# The polynomials for float64 that will be rounded to float32.
_EXP_TAIL_SHORT = (0.00019909783394166908, 0.0013946336492676663, 0.008333280296358462, 0.04166626558767932,
                   0.16666666790816947, 0.5000000079578989)  # as EXP's tail, 2**-34.3
# (log(1+f) - f) / f**2 for sqrt(1/2) <= 1+f <= sqrt(2), 2**-35.1: longer than in s, but a division costs more.
_LOG_TAIL_SHORT = (0.049871387120134295, -0.09562798078859357, 0.10039947494450345, -0.10000591497491004,
                   0.11016697987467443, -0.12491070404666627, 0.14289660721656783, -0.16667169790050168,
                   0.19999933617316076, -0.24999990970192726, 0.33333333620813593, -0.5000000003965184)
# (log((1+s)/(1-s))/s - 2 - 2/3 s**2) / s**4 in s**2, 2**-65.3.
_LOG_TAIL_LONG = (0.13197975913800616, 0.13256641697304564, 0.15386764843458522, 0.18181784204666693,
                  0.2222222252177955, 0.28571428570089114, 0.4000000000000228)
# fmt: on


def wide_log(x: Wide, add_to_k: Expr | None = None) -> Wide:
    """log(2**add_to_k x) for positive normal x: 12 bits more than the last of the type it was widened from."""
    k, f = split_exponent(leading(x), math.sqrt(0.5))
    exponent = k if add_to_k is None else k + add_to_k
    high, low = split_float(*LN2, float64)
    if not isinstance(x, Double):
        return fma(exponent, LN2[0], fma(f * f, horner(f, _LOG_TAIL_SHORT), f))
    rest = const(0.0, float64)
    if x.low is not None:
        rest = x.low * bitcast(const(bits64(1.0), int64) - (cast(k, int64) << 52), float64)
    s = _log_quotient(f, rest)
    z = s.high * s.high
    z_low = fma(s.high + s.high, s.low, fma(s.high, s.high, -z))
    third = 2 / 3
    linear = z * third
    linear_low = fma(z_low, third, fma(z, 3.700743415417188e-17, fma(z, third, -linear)))
    cubic = s.high * linear
    cubic_low = fma(s.low, linear, fma(s.high, linear_low, fma(s.high, linear, -cubic)))
    quartic = z * z
    quartic_low = fma(z + z, z_low, fma(z, z, -quartic))
    rest_of_series = horner(z, _LOG_TAIL_LONG)
    tail = fma(s.high * quartic, rest_of_series, fma(s.high * rest_of_series, quartic_low, cubic_low))
    total = fast_two_sum(s.high + s.high, cubic)
    whole = fast_two_sum(exponent * high, total.high)
    return fast_two_sum(whole.high, whole.low + fma(exponent, low, total.low + (s.low + s.low + tail)))


@one_function
def log_short(x: Expr) -> Expr:
    """Compute log of a float64 to the precision of float32, for 0, normal numbers and NaN."""
    y = wide_log(x)
    assert isinstance(y, Expr)
    return select(isnan(x), x, select(eq(x, 0), const(-INF, float64), y))


def _log_quotient(f: Expr, rest: Expr) -> Double:
    """Compute (f + rest) / (2 + f + rest)"""
    total = fast_two_sum(const(2.0, f.dtype), f)
    inverse = 1.0 / total.high
    quotient = f * inverse
    remainder = fma(-quotient, total.high, f) + fma(-quotient, total.low + rest, rest)
    return Double(quotient, remainder * inverse)


def wide_exp(x: Wide, dtype: DType) -> tuple[Expr, Wide]:
    """exp(x) = 2**k y, 1/2 <= y < 2: k + magic, and y. `dtype` says how large results may become."""
    limits = EXP[dtype]
    if not isinstance(x, Double):
        marked, _, r = exp_reduce(clamp(x, limits.low, limits.high))
        return marked, fma(r * r, horner(r, _EXP_TAIL_SHORT), r) + 1
    high = clamp(x.high, limits.low, limits.high)
    marked = fma(high, math.log2(math.e), FORMAT[float64].magic)
    k = marked - FORMAT[float64].magic
    reduced = fma(k, -limits.ln2[0], high)
    rest = -k * limits.ln2[1]
    if x.low is not None:
        rest = fma(k, -limits.ln2[1], select(eq(high, x.high), x.low, 0.0))
    r = reduced + rest
    lost = (reduced - r) + rest
    tail = fma(r * r, horner(r, limits.tail), fma(r, lost, lost))
    return marked, one_plus(r, tail)


def wide_scale(marked: Expr, y: Wide, dtype: DType) -> Expr:
    """Compute 2**k y, rounded to the type."""
    if isinstance(y, Double):
        return scaled(narrow(y, dtype), marked)
    return cast(y * power_of_two(marked), dtype)  # float64 holds every float32 result
