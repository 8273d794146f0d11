"""Computes sin, cos and tan, of arguments of any size."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core.dtype import DType, float32, float64, int64, uint64
from ..expr import (
    Expr,
    absolute,
    bitcast,
    cast,
    const,
    eq,
    fma,
    horner,
    load,
    ne,
    one_function,
    select,
    slow_path,
)
from ..wide import Double, fast_two_sum, narrow, where
from .floats import FORMAT, INF, NAN

# fmt: off
# In r**2. (sin(r) - r) / r**3 on |r| <= pi/2, 2**-35.6.
_SIN_HALF_PI = (-2.390818022418991e-08, 2.752656064356003e-06, -0.00019840893022258122, 0.008333331315730453,
                -0.16666666631562801)
# tan likewise, on |r| <= pi/4, 2**-29.4.
_TAN_SHORT = (0.004418652896099132, 8.076326737487906e-08, 0.010909628724100413, 0.021252231308329077,
              0.05406606185010654, 0.1333260536662559, 0.3333335157801592)
# (sin(r) - r) / r**3 and (cos(r) - 1 + r**2/2) / r**4 on |r| <= pi/4, 2**-58.0 and 2**-64.2.
_SIN = (1.5896814561116573e-10, -2.505075881009948e-08, 2.755731369937798e-06, -0.00019841269829841169,
        0.008333333333322477, -0.16666666666666632)
_COS = (-1.1359887301347538e-11, 2.0875728522607203e-09, -2.7557314396653383e-07, 2.4801587289661013e-05,
        -0.0013888888888874465, 0.0416666666666666)
# 64 zero bits, then the fraction of 2/pi.
_TWO_OVER_PI = (
    0x0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB, 0xF0CFBC209AF4361D,
)
# fmt: on
PI_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_PI = (math.pi, 1.2246467991473532e-16)
# Beyond, n pi/2 needs more bits of pi than fit. float32 has room to spare in float64.
_HUGE = {float32: 2.0**40, float64: 2.0**30}


def _quadrant_of_huge(x: Expr) -> tuple[Expr, Double]:
    """Compute x = q pi/2 + r, |r| <= pi/4, for a float64 x >= 2**20: q modulo 4 as int64, and r.

    Source: Payne and Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18 (1983). Of the
    product of x's 53 bits with 2/pi only the bits below 4 matter: they come from 192 bits of 2/pi that begin at
    the exponent.
    """
    bits = bitcast(x, uint64)
    exponent = (bits >> 52) & 0x7FF
    factor = (bits & ((1 << 52) - 1)) | (1 << 52)
    begin = exponent - (1075 - 62)
    words = [const(word, uint64) for word in _TWO_OVER_PI]
    index = begin >> 6
    for power in (16, 8, 4, 2, 1):  # shift the words left by index, and keep the first four
        chosen = ne(index & power, 0)
        keep = min(len(words), 3 + power)
        words = [
            select(chosen, words[i + power], words[i]) if i + power < len(words) else words[i]
            for i in range(keep)
        ]
    shift = begin & 63
    first, second, third = (
        (words[i] << shift) | ((words[i + 1] >> 1) >> (const(63, uint64) - shift)) for i in range(3)
    )
    middle = factor * second
    low = middle + _multiply_high(factor, third)
    carry = select(low < middle, const(1, uint64), 0)
    high = factor * first + _multiply_high(factor, second) + carry
    quadrant = (high + (1 << 61)) >> 62
    fraction = bitcast(high - (quadrant << 62), int64)
    kept = fraction & ~2047
    rest = fma(cast(low >> 11, float64), 2.0**-53, cast(fraction - kept, float64))
    return bitcast(quadrant, int64), fast_two_sum(cast(kept, float64), rest) * _scaled_pi_2()


def _scaled_pi_2() -> Double:
    return Double(const(PI_2[0] * 2.0**-62, float64), const(PI_2[1] * 2.0**-62, float64))


def _multiply_high(a: Expr, b: Expr) -> Expr:
    """Return the upper 64 bits of the product of two uint64."""
    low32 = 0xFFFFFFFF
    a_low, a_high, b_low, b_high = a & low32, a >> 32, b & low32, b >> 32
    cross = a_high * b_low + ((a_low * b_low) >> 32)
    other = a_low * b_high + (cross & low32)
    return a_high * b_high + (cross >> 32) + (other >> 32)


def _quadrant(x: Expr) -> tuple[Expr, Double]:
    """Reduce x = q pi/2 + r, |r| <= pi/4, for float64 |x| <= 2**30: q as int64 (modulo 4), and r."""
    magic = FORMAT[float64].magic
    marked = fma(x, 2 / math.pi, magic)
    n = marked - magic
    exact = fma(n, -PI_2[0], x)
    r = fma(n, -PI_2[1], exact)
    rest = fma(n, -PI_2[2], fma(n, -PI_2[1], exact - r))
    return bitcast(marked, int64), Double(r, rest)


def _unless_huge(x: Expr, limit: float, usual: Expr, of_huge: Callable[[Expr, Expr, Double], Expr]) -> Expr:
    """`usual`, but of_huge(x, q, r) with |x| = q pi/2 + r where |x| is beyond the limit; NaN for infinities."""
    argument = load(0, x.dtype)
    wide = absolute(cast(argument, float64))
    exception = select(wide < INF, of_huge(argument, *_quadrant_of_huge(wide)), NAN)
    return slow_path(x, usual, const(limit, x.dtype) < absolute(argument), exception)


def _sin_cos(r: Double) -> tuple[Double, Double]:
    """sin(r) and cos(r) for |r| <= pi/4, some bits more than float64 has."""
    z = r.high * r.high
    low = r.low
    sine = fast_two_sum(r.high, fma(r.high * z, horner(z, _SIN), fma(z * -0.5, low, low)))
    half = z * 0.5
    square_error = fma(r.high, r.high, -z)
    whole = 1.0 - half
    tail = fma(z * z, horner(z, _COS), fma(-r.high, low, square_error * -0.5))
    cosine = fast_two_sum(whole, ((1.0 - whole) - half) + tail)
    return sine, cosine


@one_function
def sin(x: Expr) -> Expr:
    y = _sin_float32(x, 0) if x.dtype is float32 else _sin_of_quadrant(*_quadrant(x))
    y = _unless_huge(x, _HUGE[x.dtype], y, _sin_of_huge)
    return select(eq(x, 0), x, y)


@one_function
def cos(x: Expr) -> Expr:
    if x.dtype is float32:
        y = _sin_float32(x, 1)
    else:
        quadrant, r = _quadrant(x)
        y = _sin_of_quadrant(quadrant + 1, r)
    return _unless_huge(x, _HUGE[x.dtype], y, lambda x, q, r: cast(_sin_of_quadrant(q + 1, r), x.dtype))


def _sin_of_huge(x: Expr, quadrant: Expr, r: Double) -> Expr:
    y = cast(_sin_of_quadrant(quadrant, r), x.dtype)
    return select(x < 0, -y, y)


def _sin_of_quadrant(quadrant: Expr, r: Double) -> Expr:
    sine, cosine = _sin_cos(r)
    y = select(eq(quadrant & 1, 0), sine.high, cosine.high)
    return bitcast(bitcast(y, int64) ^ ((quadrant & 2) << 62), float64)


def _sin_float32(x: Expr, halves: int) -> Expr:
    """Compute sin(x + halves pi/2) = (-1)**n sin(r) with x = (n - halves/2) pi + r, |r| <= pi/2, in float64."""
    wide = cast(x, float64)
    magic, offset = FORMAT[float64].magic, 0.5 * halves
    marked = fma(wide, 1 / math.pi, offset) + magic
    n = (marked - magic) - offset
    r = fma(n, -_PI[1], fma(n, -_PI[0], wide))
    z = r * r
    y = fma(r * z, horner(z, _SIN_HALF_PI), r)
    return cast(bitcast(bitcast(y, int64) ^ (bitcast(marked, int64) << 63), float64), float32)


@one_function
def tan(x: Expr) -> Expr:
    y = _tan_of_quadrant(*_quadrant(cast(x, float64)), x.dtype)
    y = _unless_huge(x, _HUGE[float64], y, _tan_of_huge)
    return select(eq(x, 0), x, y)


def _tan_of_huge(x: Expr, quadrant: Expr, r: Double) -> Expr:
    y = _tan_of_quadrant(quadrant, r, x.dtype)
    return select(x < 0, -y, y)


def _tan_of_quadrant(quadrant: Expr, r: Double, dtype: DType) -> Expr:
    odd = ne(quadrant & 1, 0)
    if dtype is float32:
        z = r.high * r.high
        tangent = fma(r.high * z, horner(z, _TAN_SHORT), r.high)
        return cast(select(odd, const(-1.0, float64), tangent) / select(odd, tangent, 1.0), float32)
    sine, cosine = _sin_cos(r)
    return narrow(where(odd, -cosine, sine) / where(odd, sine, cosine), float64)
