"""Transcendental functions as expressions over primitives: at most 1 ulp off, without branches, tables or calls.

Each function reduces its argument, evaluates polynomials with fused multiply-adds and selects the special
cases. float32 functions calculate in float32 where that is accurate enough, else in float64. Unless a comment says
otherwise, the polynomials are weighted minimax fits: least squares on Chebyshev nodes in 66 digits, reweighted
towards the maximum (Lawson), coefficients rounded from the lowest power up and the rest fitted again. The stated
errors are relative to the function. Measured accuracy: docs/accuracy.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import NamedTuple

from ..core.dtype import DType, float32, float64, int64, uint64
from .expr import (
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
    load,
    ne,
    rarely,
    rint,
    select,
    sqrt,
)
from .wide import Double, Wide, constant, fast_two_sum, leading, narrow, two_sum, where, widen
from .wide import sqrt as wide_sqrt

_INF, _NAN = math.inf, math.nan


class _Format(NamedTuple):
    """A float type's layout."""

    mantissa: int  # stored bits
    bias: int
    magic: float  # adding it rounds to an integer, which then is in the low bits
    smallest_normal: float


_FORMAT = {
    float32: _Format(23, 127, 1.5 * 2.0**23, 2.0**-126),
    float64: _Format(52, 1023, 1.5 * 2.0**52, 2.0**-1022),
}


def _bits(value: float, dtype: DType) -> int:
    """The bit pattern of a float, as a signed integer."""
    return struct.unpack("<i", struct.pack("<f", value))[0] if dtype is float32 else _bits64(value)


def _bits64(value: float) -> int:
    return struct.unpack("<q", struct.pack("<d", value))[0]


def _clamp(x: Expr, low: float, high: float) -> Expr:
    """NaN passes."""
    x = select(const(high, x.dtype) < x, high, x)
    return select(x < low, low, x)


# ---------------------------------------------------------------------------------------------------- exp


class _Exp(NamedTuple):
    low: float  # exp is 0 below
    high: float  # exp is infinite above
    ln2: tuple[float, float]  # the nearest float and what it misses
    tail: tuple[float, ...]  # (exp(r) - 1 - r) / r**2 on |r| <= ln(2)/2
    exp2: tuple[float, ...]  # (2**r - 1) / r on |r| <= 1/2
    expm1: tuple[float, ...]  # as tail, but on |r| <= 1/2


# fmt: off
_EXP = {
    float32: _Exp(
        -104.0, 89.0, (0.6931471824645996, -1.904654323148236e-09),
        (0.00019953362, 0.0013935461, 0.008333198, 0.04166646, 0.16666667, 0.5),  # 2**-33.1
        (1.4710306e-05, 0.00015456245, 0.0013336409, 0.009618077, 0.055504065, 0.2402265, 0.6931472),  # 2**-32.4
        (0.00020010081, 0.0013986052, 0.008333005, 0.04166578, 0.16666669, 0.5),  # 2**-27.2
    ),
    float64: _Exp(
        -746.0, 710.0, (0.6931471805599453, 2.3190468138462996e-17),
        (2.5113448222596905e-08, 2.76316095953162e-07, 2.7557230745813015e-06, 2.480148897593953e-05,
         0.00019841269900488996, 0.0013888888948011499, 0.008333333333315455, 0.04166666666651124,
         0.16666666666666685, 0.5000000000000013),  # 2**-58.0
        (2.496058003308815e-11, 4.467682631845164e-10, 7.055440305322404e-09, 1.0177971184081427e-07,
         1.3215485406236363e-06, 1.525273407152084e-05, 0.00015403530394966048, 0.0013333558146129759,
         0.009618129107627734, 0.055504108664823054, 0.24022650695910072, 0.6931471805599453),  # 2**-59.5
        (1.614168751506725e-10, 2.0970191110899356e-09, 2.5051754251097738e-08, 2.755703181249031e-07,
         2.755731998688786e-06, 2.480158771288943e-05, 0.00019841269840411524, 0.0013888888888621382,
         0.0083333333333338, 0.041666666666667275, 0.16666666666666666, 0.5),  # 2**-60.4
    ),
}
# fmt: on


def _exp_reduce(x: Expr) -> tuple[Expr, Expr, Expr]:
    """x = k ln 2 + r, |r| <= ln(2)/2: k + magic (whose low bits are k), k and r."""
    magic, ln2 = _FORMAT[x.dtype].magic, _EXP[x.dtype].ln2
    marked = fma(x, math.log2(math.e), magic)
    k = marked - magic
    return marked, k, fma(k, -ln2[1], fma(k, -ln2[0], x))


def _exp_tail(r: Expr) -> Expr:
    """exp(r) - 1"""
    return fma(r * r, horner(r, _EXP[r.dtype].tail), r)


def _power_of_two(marked: Expr) -> Expr:
    """2**k from k + magic; k must be the exponent of a normal number."""
    shape, whole = _FORMAT[marked.dtype], int_like(marked)
    return bitcast((bitcast(marked, whole) << shape.mantissa) + (shape.bias << shape.mantissa), marked.dtype)


def _scale(y: Expr, marked: Expr) -> Expr:
    """y * 2**k from k + magic, in two steps, so that overflow and subnormal results come out right."""
    shape, whole = _FORMAT[y.dtype], int_like(y)
    k = bitcast(marked, whole)
    half = k >> 1  # the bits of magic above k are even and shifted out below
    one = shape.bias << shape.mantissa
    first = bitcast((half << shape.mantissa) + one, y.dtype)
    second = bitcast(((k - half) << shape.mantissa) + one, y.dtype)
    return y * first * second


def _exp_parts(x: Expr) -> tuple[Expr, Double]:
    """exp(x) = 2**k (high + low): k + magic, and the sum to 5 bits more than the type's precision."""
    marked, _, r = _exp_reduce(x)
    return marked, _one_plus(r, r * r * horner(r, _EXP[x.dtype].tail))


def _one_plus(r: Expr, tail: Expr) -> Double:
    high = r + 1
    return fast_two_sum(high, (r - (high - 1)) + tail)


def exp(x: Expr) -> Expr:
    x = _clamp(x, _EXP[x.dtype].low, _EXP[x.dtype].high)
    marked, _, r = _exp_reduce(x)
    return _scale(_exp_tail(r) + 1, marked)


def exp2(x: Expr) -> Expr:
    shape = _FORMAT[x.dtype]
    x = _clamp(x, -shape.bias - shape.mantissa - 4.0, shape.bias + 2.0)
    marked = x + shape.magic
    r = x - (marked - shape.magic)
    return _scale(fma(r, horner(r, _EXP[x.dtype].exp2), 1.0), marked)


def expm1(x: Expr) -> Expr:
    """2**k (exp(r) - 1) + (2**k - 1), halved meanwhile so that k = 128 does not overflow.

    k is 0 up to |x| = 1/2: with k = 1 and x below that the sum would cancel bits that exp(r) - 1 does not have.
    """
    shape, constants = _FORMAT[x.dtype], _EXP[x.dtype]
    clamped = _clamp(x, -1.5 * shape.mantissa, constants.high)
    small = absolute(x) < 0.5
    marked = select(small, shape.magic, fma(clamped, math.log2(math.e), shape.magic))
    k = marked - shape.magic
    reduced = fma(k, -constants.ln2[0], clamped)
    r = fma(k, -constants.ln2[1], reduced)
    lost = fma(k, -constants.ln2[1], reduced - r)
    half = _power_of_two(marked - 1)
    tail = fma(r * r, horner(r, constants.expm1), lost)
    less = half - 0.5
    total = fast_two_sum(less, half * r)
    y = (total.high + (total.low + fma(half, tail, (half - less) - 0.5))) * 2
    return select(absolute(x) < 2.0 ** (-shape.mantissa - 2), x, y)


# ---------------------------------------------------------------------------------------------------- log


class _Log(NamedTuple):
    log1p_tail: tuple[float, ...]
    bases: dict[int, tuple[float, float, float, float]]  # 1/ln(base) and log_base(2), each in two parts


def _split(value: float, rest: float, dtype: DType) -> tuple[float, float]:
    """value + rest as two floats; the first has 9 (float32) or 12 trailing zero bits: times k it is exact."""
    keep = -(1 << 9) if dtype is float32 else -(1 << 12)
    if dtype is float32:
        high = struct.unpack("<f", struct.pack("<i", _bits(value, dtype) & keep))[0]
    else:
        high = struct.unpack("<d", struct.pack("<q", _bits64(value) & keep))[0]
    return high, (value - high) + rest


# fmt: off
# 1 + f is from 0.675 to 1.35, so that f*f/2 < 1/16 and its rounding is small beside the sum. float32: (log(1+f) - f
# + f*f/2) / f**3, 2**-30.1. float64: with s = f/(2+f), (log((1+s)/(1-s))/s - 2) / s**2 in s**2 (fdlibm's reduction),
# 2**-56.6.
_LOG_FROM = 0.675
_LOG_TAIL = {
    float32: (0.10542876, -0.12802571, 0.11104921, -0.122027844, 0.14276217, -0.1667925, 0.20000456,
              -0.24999824, 0.33333328),
    float64: (0.15240706259247866, 0.15266084392175863, 0.18185585455120695, 0.22222156756139397,
              0.2857142917843079, 0.3999999999733432, 0.6666666666667063),
}
# What the nearest float64 misses of each constant.
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
_LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)
# fmt: on


def _log_reduce(x: Expr) -> tuple[Expr, Expr]:
    """x = 2**k (1 + f), _LOG_FROM <= 1 + f < 2 _LOG_FROM, for positive finite x: k (as a float) and f."""
    shape = _FORMAT[x.dtype]
    subnormal = x < shape.smallest_normal
    lift_by = shape.mantissa + 1
    normal = select(subnormal, x * 2.0**lift_by, x)
    k, f = _split_exponent(normal, _LOG_FROM)
    return k + select(subnormal, const(-lift_by, x.dtype), 0.0), f


def _split_exponent(x: Expr, begin: float) -> tuple[Expr, Expr]:
    shape, whole = _FORMAT[x.dtype], int_like(x)
    first = _bits(begin, x.dtype)
    offset = bitcast(x, whole) - first
    k = cast(offset >> shape.mantissa, x.dtype)
    return k, bitcast((offset & ((1 << shape.mantissa) - 1)) + first, x.dtype) - 1


def _log1p_tail(f: Expr, addend: Expr | None = None) -> Expr:
    """log(1 + f) - f, plus a small addend"""
    square = f * f
    tail = _LOG_TAIL[f.dtype]
    if f.dtype is float32:
        start = square * -0.5 if addend is None else fma(square, -0.5, addend)
        return fma(square * f, horner(f, tail), start)
    s = f / (f + 2)
    z = s * s
    half = square * 0.5
    return fma(s, fma(z, horner(z, tail), half), -half if addend is None else addend - half)


def _log_special(x: Expr, y: Expr) -> Expr:
    """y, but right for x = inf, NaN, 0 and negative x."""
    y = select(x < _INF, y, x)
    return select(x <= 0, select(eq(x, 0), const(-_INF, x.dtype), _NAN), y)


def log(x: Expr) -> Expr:
    k, f = _log_reduce(x)
    return _log_special(x, _log_sum(k, f))


def _log_sum(k: Expr, f: Expr) -> Expr:
    high, low = _split(*_LN2, f.dtype)
    return fma(k, high, f + fma(k, low, _log1p_tail(f)))


def log2(x: Expr) -> Expr:
    return _log_of_base(x, _LOG2_E, (1.0, 0.0))


def log10(x: Expr) -> Expr:
    return _log_of_base(x, _LOG10_E, _LOG10_2)


def _log_of_base(x: Expr, log_e: tuple[float, float], log_2: tuple[float, float]) -> Expr:
    """k log_2 + (f + tail) log_e, the product f log_e and the sum with k in two floats."""
    dtype = x.dtype
    e_high, e_low = _nearest(*log_e, dtype)
    k_high, k_low = _split(*log_2, dtype)
    k, f = _log_reduce(x)
    high = f * e_high
    low = fma(f, e_low, fma(f, e_high, -high))
    total = fast_two_sum(k * k_high, high)
    low = low + fma(k, k_low, total.low)
    return _log_special(x, total.high + fma(_log1p_tail(f), e_high, low))


def _nearest(value: float, rest: float, dtype: DType) -> tuple[float, float]:
    """value + rest as the nearest float of the type and what that misses."""
    if dtype is float64:
        return value, rest
    high = struct.unpack("<f", struct.pack("<f", value))[0]
    return high, (value - high) + rest


def log1p(x: Expr) -> Expr:
    """1 + x = 2**k (1 + f) with f = 2**-k x + (2**-k - 1), so that no bit of a small x is lost."""
    shape, whole = _FORMAT[x.dtype], int_like(x)
    exponent = (bitcast(x + 1, whole) - _bits(_LOG_FROM, x.dtype)) >> shape.mantissa
    shift = exponent << shape.mantissa
    # k may exceed the exponents of 2**-k by one: by then 2**-k - 1 is -1 anyway.
    shrink = bitcast(const(_bits(1.0, x.dtype), whole) - shift, x.dtype)
    shrink_less_1 = select(exponent < shape.bias, shrink, 0.0) - 1
    scaled = bitcast(bitcast(x, whole) - shift, x.dtype)
    f = scaled + shrink_less_1
    lost = scaled - (f - shrink_less_1)
    lost = fma(fma(f, f, -f), lost, lost)  # over 1 + f, nearly
    # The sum of k ln 2 and f cancels for 1 + x a little above 1.35: keep its error as well.
    k = cast(exponent, x.dtype)
    high, low = _split(*_LN2, x.dtype)
    total = fast_two_sum(k * high, f)
    y = total.high + _log1p_tail(f, fma(k, low, total.low + lost))
    y = select(x < _INF, y, x)
    y = select(x <= -1, select(eq(x, -1), const(-_INF, x.dtype), _NAN), y)
    return select(absolute(x) < 2.0 ** (-shape.mantissa - 2), x, y)


# ------------------------------------------------------------------------------- exp and log in more bits

# fmt: off
# The polynomials for float64 that will be rounded to float32.
_EXP_TAIL_SHORT = (0.00019909783394166908, 0.0013946336492676663, 0.008333280296358462, 0.04166626558767932,
                   0.16666666790816947, 0.5000000079578989)  # as _EXP's tail, 2**-34.3
# (log(1+f) - f) / f**2 for sqrt(1/2) <= 1+f <= sqrt(2), 2**-35.1: longer than in s, but a division costs more.
_LOG_TAIL_SHORT = (0.049871387120134295, -0.09562798078859357, 0.10039947494450345, -0.10000591497491004,
                   0.11016697987467443, -0.12491070404666627, 0.14289660721656783, -0.16667169790050168,
                   0.19999933617316076, -0.24999990970192726, 0.33333333620813593, -0.5000000003965184)
# (log((1+s)/(1-s))/s - 2 - 2/3 s**2) / s**4 in s**2, 2**-65.3.
_LOG_TAIL_LONG = (0.13197975913800616, 0.13256641697304564, 0.15386764843458522, 0.18181784204666693,
                  0.2222222252177955, 0.28571428570089114, 0.4000000000000228)
# fmt: on


def _wide_log(x: Wide, add_to_k: Expr | None = None) -> Wide:
    """log(2**add_to_k x) for positive normal x: 12 bits more than the last of the type it was widened from."""
    k, f = _split_exponent(leading(x), math.sqrt(0.5))
    exponent = k if add_to_k is None else k + add_to_k
    high, low = _split(*_LN2, float64)
    if not isinstance(x, Double):
        return fma(exponent, _LN2[0], fma(f * f, horner(f, _LOG_TAIL_SHORT), f))
    rest = const(0.0, float64)
    if x.low is not None:
        rest = x.low * bitcast(const(_bits64(1.0), int64) - (cast(k, int64) << 52), float64)
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


def _log_quotient(f: Expr, rest: Expr) -> Double:
    """(f + rest) / (2 + f + rest)"""
    total = fast_two_sum(const(2.0, f.dtype), f)
    inverse = 1.0 / total.high
    quotient = f * inverse
    remainder = fma(-quotient, total.high, f) + fma(-quotient, total.low + rest, rest)
    return Double(quotient, remainder * inverse)


def _wide_exp(x: Wide, dtype: DType) -> tuple[Expr, Wide]:
    """exp(x) = 2**k y, 1/2 <= y < 2: k + magic, and y. `dtype` says how large results may become."""
    limits = _EXP[dtype]
    if not isinstance(x, Double):
        marked, _, r = _exp_reduce(_clamp(x, limits.low, limits.high))
        return marked, fma(r * r, horner(r, _EXP_TAIL_SHORT), r) + 1
    high = _clamp(x.high, limits.low, limits.high)
    marked = fma(high, math.log2(math.e), _FORMAT[float64].magic)
    k = marked - _FORMAT[float64].magic
    reduced = fma(k, -limits.ln2[0], high)
    rest = -k * limits.ln2[1]
    if x.low is not None:
        rest = fma(k, -limits.ln2[1], select(eq(high, x.high), x.low, 0.0))
    r = reduced + rest
    lost = (reduced - r) + rest
    tail = fma(r * r, horner(r, limits.tail), fma(r, lost, lost))
    return marked, _one_plus(r, tail)


def _wide_scale(marked: Expr, y: Wide, dtype: DType) -> Expr:
    """2**k y, rounded to the type."""
    if isinstance(y, Double):
        return _scale(narrow(y, dtype), marked)
    return cast(y * _power_of_two(marked), dtype)  # float64 holds every float32 result


# -------------------------------------------------------------------------------------- sin, cos, tan

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
_PI_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_PI = (math.pi, 1.2246467991473532e-16)
# Beyond, n pi/2 needs more bits of pi than fit. float32 has room to spare in float64.
_HUGE = {float32: 2.0**40, float64: 2.0**30}


def _quadrant_of_huge(x: Expr) -> tuple[Expr, Double]:
    """x = q pi/2 + r, |r| <= pi/4, for a float64 x >= 2**20: q modulo 4 as int64, and r.

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
    return Double(const(_PI_2[0] * 2.0**-62, float64), const(_PI_2[1] * 2.0**-62, float64))


def _multiply_high(a: Expr, b: Expr) -> Expr:
    """The upper 64 bits of the product of two uint64."""
    low32 = 0xFFFFFFFF
    a_low, a_high, b_low, b_high = a & low32, a >> 32, b & low32, b >> 32
    cross = a_high * b_low + ((a_low * b_low) >> 32)
    other = a_low * b_high + (cross & low32)
    return a_high * b_high + (cross >> 32) + (other >> 32)


def _quadrant(x: Expr) -> tuple[Expr, Double]:
    """x = q pi/2 + r, |r| <= pi/4, for float64 |x| <= 2**30: q as int64 (modulo 4), and r."""
    magic = _FORMAT[float64].magic
    marked = fma(x, 2 / math.pi, magic)
    n = marked - magic
    exact = fma(n, -_PI_2[0], x)
    r = fma(n, -_PI_2[1], exact)
    rest = fma(n, -_PI_2[2], fma(n, -_PI_2[1], exact - r))
    return bitcast(marked, int64), Double(r, rest)


def _unless_huge(x: Expr, limit: float, usual: Expr, of_huge: Callable[[Expr, Expr, Double], Expr]) -> Expr:
    """`usual`, but of_huge(x, q, r) with |x| = q pi/2 + r where |x| is beyond the limit; NaN for infinities."""
    argument = load(0, x.dtype)
    wide = absolute(cast(argument, float64))
    exception = select(wide < _INF, of_huge(argument, *_quadrant_of_huge(wide)), _NAN)
    return rarely(x, usual, const(limit, x.dtype) < absolute(argument), exception)


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


def sin(x: Expr) -> Expr:
    y = _sin_float32(x, 0) if x.dtype is float32 else _sin_of_quadrant(*_quadrant(x))
    y = _unless_huge(x, _HUGE[x.dtype], y, _sin_of_huge)
    return select(eq(x, 0), x, y)


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
    """sin(x + halves pi/2) = (-1)**n sin(r) with x = (n - halves/2) pi + r, |r| <= pi/2, in float64."""
    wide = cast(x, float64)
    magic, offset = _FORMAT[float64].magic, 0.5 * halves
    marked = fma(wide, 1 / math.pi, offset) + magic
    n = (marked - magic) - offset
    r = fma(n, -_PI[1], fma(n, -_PI[0], wide))
    z = r * r
    y = fma(r * z, horner(z, _SIN_HALF_PI), r)
    return cast(bitcast(bitcast(y, int64) ^ (bitcast(marked, int64) << 63), float64), float32)


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


# ---------------------------------------------------------------------------------- asin, acos, atan, atan2

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
    """Whether |x| > 1/2; a = |x|, or sqrt((1 - |x|) / 2) if so; and asin(a) - a."""
    size = absolute(x)
    large = const(0.5, x.dtype) < size
    z = select(large, fma(size, -0.5, 0.5), x * x)
    root = wide_sqrt(Double(z))
    a = where(large, root, Double(size))
    return large, a, a.high * z * horner(z, _ASIN[x.dtype])


def asin(x: Expr) -> Expr:
    """pi/2 - 2 asin(sqrt((1 - |x|) / 2)) for large |x|"""
    large, a, tail = _asin_halves(x)
    high, low = _nearest(*_PI_2[:2], x.dtype)
    reflected = Double(const(high, x.dtype)) - a * 2.0
    reflected = reflected.high + (reflected.low + fma(tail, -2.0, low))
    return copysign(select(large, reflected, a.high + tail), x)


def acos(x: Expr) -> Expr:
    large, a, tail = _asin_halves(x)
    half_pi = Double(*(const(part, x.dtype) for part in _nearest(*_PI_2[:2], x.dtype)))
    negative = x < 0
    # asin(x) is x + tail; beyond 1/2 acos(x) is 2 (a + tail), or pi less that.
    sign = select(negative, const(-1.0, x.dtype), 1.0)
    near = half_pi - a * sign
    far = where(negative, half_pi * 2.0, Double(const(0.0, x.dtype))) + a * (sign * 2.0)
    y = where(large, far, near)
    return y.high + (y.low + tail * select(large, sign * 2.0, -sign))


def atan(x: Expr) -> Expr:
    size = _clamp(
        absolute(x), 0.0, 2.0**60
    )  # beyond, the result is pi/2 all the same, and infinity has no quotient
    middle, far = const(_TAN_PI_8, x.dtype) < size, const(_TAN_3PI_8, x.dtype) < size
    less, more = Double(size) - 1.0, Double(size) + 1.0
    one = Double(const(1.0, x.dtype))
    numerator = where(middle, where(far, -one, less), Double(size))
    denominator = where(middle, where(far, Double(size), more), one)
    base = select(middle, select(far, const(2.0, x.dtype), 1.0), 0.0)
    return copysign(_atan_sum(numerator / denominator, base), x)


def _atan_sum(q: Double, eighths: Expr) -> Expr:
    """eighths pi/4 + atan(q), |q| <= tan(pi/8)"""
    dtype = eighths.dtype
    z = q.high * q.high
    tail = fma(q.high * z, horner(z, _ATAN[dtype]), q.low)
    high, low = _nearest(_PI_2[0] / 2, _PI_2[1] / 2, dtype)
    total = fast_two_sum(eighths * high, q.high)
    return total.high + (total.low + fma(eighths, low, tail))


def atan2(y: Expr, x: Expr) -> Expr:
    if x.dtype is float64:
        y, x = _scale_pair(y, x)
    rise, run = widen(absolute(y)), widen(absolute(x))
    steep = leading(run) < leading(rise)
    less, more = where(steep, run, rise), where(steep, rise, run)
    both_infinite = eq(leading(less), _INF)
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
        q = where(eq(leading(more), _INF) & ~both_infinite, one - one, q)
        angle = _atan_sum(q * sign, eighths)
    else:
        z = q * q
        angle = cast(fma(fma(q * z, horner(z, _ATAN_SHORT), q), sign, eighths * (_PI_2[0] / 2)), x.dtype)
    angle = select(isnan(x) | isnan(y), const(_NAN, x.dtype), angle)
    return copysign(angle, y)


def _scale_pair(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both times the power of two that makes the larger one about 1."""
    larger = _larger(a, b)
    exponent = bitcast(larger, int64) & (0x7FF << 52)
    factor = bitcast(select(larger < 2.0**1020, const(2046 << 52, int64) - exponent, 3 << 52), float64)
    return a * factor, b * factor


def _larger(a: Expr, b: Expr) -> Expr:
    """The larger absolute value."""
    return select(absolute(a) < absolute(b), absolute(b), absolute(a))


def _hypot_factor(a: Expr, b: Expr) -> Expr:
    larger = _larger(a, b)
    factor = select(larger < 2.0**-400, const(2.0**600, float64), 1.0)
    return select(const(2.0**400, float64) < larger, const(2.0**-600, float64), factor)


def hypot(a: Expr, b: Expr) -> Expr:
    infinite = eq(absolute(a), _INF) | eq(absolute(b), _INF)
    if a.dtype is float32:
        wide_a, wide_b = cast(a, float64), cast(b, float64)
        y = cast(sqrt(fma(wide_a, wide_a, wide_b * wide_b)), float32)
    else:
        factor = _hypot_factor(a, b)
        scaled_a, scaled_b = Double(a * factor), Double(b * factor)
        y = narrow(wide_sqrt(scaled_a * scaled_a + scaled_b * scaled_b), float64) * (1.0 / factor)
    return select(infinite, const(_INF, a.dtype), y)


# ------------------------------------------------------------------- sinh, cosh, tanh and their inverses

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
    marked, power = _exp_parts(_clamp(size * 2, 0.0, 1.5 * _FORMAT[x.dtype].mantissa))
    scale = _power_of_two(marked)
    total = fast_two_sum(power.high * scale, const(1.0, x.dtype))
    half = 1.0 / total.high
    quotient = half + half
    excess = fma(quotient, total.high, -2.0) + quotient * (total.low + power.low * scale)
    y = 1.0 - fma(-excess, half, quotient)
    return copysign(select(size < 0.55, _odd(size, _TANH[x.dtype]), y), x)


# sigmoid adds 1 and exp(-x), both times this: exp(-x) overflows before the result is 0. Beyond the second it is 1.
_SIGMOID_SHRINK = {float32: (-32, 60.0), float64: (-64, 60.0)}


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)), the sum and the quotient with their errors."""
    shrink, one_from = _SIGMOID_SHRINK[x.dtype]
    marked, _, r = _exp_reduce(_clamp(-x, -one_from, -_EXP[x.dtype].low))
    scale = _power_of_two(marked + shrink)
    power = fast_two_sum(const(1.0, x.dtype), _exp_tail(r))
    total, error = two_sum(const(2.0**shrink, x.dtype), power.high * scale)
    inverse = 1.0 / total
    rest = fma(-inverse, fma(power.low, scale, error), fma(-inverse, total, 1.0))
    return fma(rest, inverse, inverse) * 2.0**shrink


def _half_exp(x: Expr) -> tuple[Double, Expr]:
    """exp(|x|) / 2 and exp(-|x|) / 2, of which the first may need one more factor of 2**64 to be in range."""
    marked, power = _exp_parts(_clamp(absolute(x), 0.0, _EXP[x.dtype].high + 1))
    scale = _power_of_two(marked - 65)
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
    wide = widen(_clamp(size, 0.0, 2.0**60))
    argument = where(large, widen(size * 2.0**-32), wide + wide_sqrt(wide * wide + 1.0))
    y = narrow(_wide_log(argument, select(large, const(33.0, float64), 0.0)), x.dtype)
    y = select(size < _INF, y, size)
    return select(size < _TINY[x.dtype], x, copysign(y, x))


def acosh(x: Expr) -> Expr:
    """log(x + sqrt((x - 1) (x + 1)))"""
    large = const(2.0**60, x.dtype) < x
    wide = widen(_clamp(x, 1.0, 2.0**60))
    less = wide - 1.0
    argument = where(large, widen(x * 2.0**-32), wide + wide_sqrt(less * (wide + 1.0)))
    y = narrow(_wide_log(argument, select(large, const(33.0, float64), 0.0)), x.dtype)
    y = select(x < _INF, y, x)
    return select(x < 1, _NAN, y)


def atanh(x: Expr) -> Expr:
    """log((1 + |x|) / (1 - |x|)) / 2"""
    size = absolute(x)
    wide = widen(select(size < 1, size, 0.0))
    y = narrow(_wide_log((wide + 1.0) / (1.0 - wide)) * 0.5, x.dtype)
    y = select(size < _TINY[x.dtype], x, copysign(y, x))
    y = select(eq(size, 1), copysign(const(_INF, x.dtype), x), y)
    return select(size <= 1, y, _NAN)


# ---------------------------------------------------------------------------------------------------- pow


def pow(x: Expr, y: Expr) -> Expr:
    """exp(y log |x|) with the sign and the special cases of C's pow (C11 F.10.4.4)."""
    dtype = x.dtype
    size = absolute(x)
    usual = (const(0.0, dtype) < size) & (size < _INF)
    base, lifted = select(usual, size, 1.0), None
    if dtype is float64:  # subnormal numbers of float32 are normal there
        tiny = base < _FORMAT[dtype].smallest_normal
        base, lifted = select(tiny, base * 2.0**64, base), select(tiny, const(-64.0, dtype), 0.0)
    exponent = widen(_clamp(y, -(2.0**66), 2.0**66))  # beyond, the result is 0, 1 or infinite anyway
    marked, power = _wide_exp(_wide_log(widen(base), lifted) * exponent, dtype)
    z = _wide_scale(marked, power, dtype)
    zero_or_infinite = select(eq(eq(size, 0), const(0.0, dtype) < y), const(0.0, dtype), _INF)
    z = select(usual, z, zero_or_infinite)
    half = y * 0.5
    is_whole = eq(rint(y), y)
    is_odd = is_whole & ne(rint(half), half)
    z = select(is_odd, copysign(z, x), z)
    z = select((x < 0) & ~is_whole & usual, _NAN, z)
    z = select(isnan(x) | isnan(y), const(_NAN, dtype), z)
    return select(eq(x, 1) | eq(y, 0), const(1.0, dtype), z)


# ------------------------------------------------------------------------------------- erf, erfc, erfinv

# fmt: off
# erf(x) / x - 1 in x**2 on |x| <= 1, 2**-29.3 and 2**-56.2 of erf(1).
_ERF = {
    float32: (7.92031e-05, -0.0008030751, 0.0051907334, -0.026855126, 0.11283618, -0.3761263, 0.12837917),
    float64: (1.338734537295533e-10, -1.5868361363944591e-09, 1.5850949006020543e-08, -1.653184329438595e-07,
              1.6478569694765026e-06, -1.492672039618256e-05, 0.00012055379285702889, -0.0008548328342598227,
              0.00522397764931669, -0.026866170647691836, 0.11283791670969426, -0.3761263890318407,
              0.1283791670955126),
}
# -log(1 - erf(x)) on 0.95 <= x <= 3.95, 2**-29.5.
_ERF_LARGE = (-0.00019249624, 0.0030092197, -0.022090321, 0.10364577, 0.63751096, 1.1274785, 0.00024389343)
# (1 + 2x) exp(x**2) erfc(x) in t = (x - 4) / (x + 4); to x = 10.2 for float32 (t = (x - 3) / (x + 3), 2**-30.3)
# and to 27.3, 2**-58.0, whose constant term is in two parts.
_ERFC = {
    float32: (3.5806543534972336e-05, -0.00018193415873340592, -0.0007416908328427157, 0.0019493676385657051,
              0.0025296260680840598, -0.02378738012658001, 0.06830601570044859, -0.11927168034861305,
              0.12964540710560668, -0.04756238058955008, -0.13562111253130912),
    float64: (2.8696671307860754e-10, 2.083937396984843e-09, 1.671290447413828e-09, -1.655979427075211e-08,
              -1.902596091111301e-08, 1.1324240856205732e-07, 7.690536402217913e-08, -8.27766875097381e-07,
              2.9175471872353905e-07, 5.7108019527664826e-06, -1.1220958818458365e-05, -2.439952990582202e-05,
              0.00015062133029352718, -0.00019925663328116972, -0.0007577732184828804, 0.0050319699699904324,
              -0.016197734066577728, 0.037167515538185786, -0.06633036581157792, 0.09373283499830995,
              -0.10103906603632824, 0.06809705425469388, 0.015379652102620088, -0.13962111684056253),
}
_ERFC_0 = {float32: (1.2530080589083992, 0.0), float64: (1.2329951186255526, -4.625318921008717e-17)}
_ERFC_CENTRE = {float32: 3.0, float64: 4.0}
_ERFC_END = {float32: 10.2, float64: 27.3}
# erfinv(x) / x, w = -log(1 - x**2): (w from, centre, constant term in two parts, the rest); from 6.25 on in sqrt(w).
_ERFINV = {
    float32: (
        (0.0, 3.125, (1.6536545713871147, 0.0),
         (6.416725418381796e-10, -4.6309531004272075e-09, -2.429195568052777e-08, 4.2617070488200675e-07,
          -1.3913246456465456e-06, -1.3890640160641784e-05, 0.00018679766733438436, -0.0007406894021525761,
          -0.006033727816109459, 0.2401581750875373)),  # 2**-27.4
        (6.25, 3.25, (3.083885602272992, 0.0),
         (7.081609973278336e-05, -4.3527384389041754e-05, -0.00034842310536190924, 0.0009893122860980576,
          -0.0016918886318937018, 0.002483391769419091, -0.0037506583538787688, 0.005371554473634554,
          1.005258948670989)),  # 2**-28.5
    ),
    float64: (
        (0.0, 3.125, (1.6536545626831027, -2.3602490514133155e-17),
         (-3.319760042551228e-22, 3.1936966761039514e-21, 1.8416805901372127e-20, -3.473381176798047e-19,
          6.470933021323407e-19, 1.5510758126539142e-17, -1.2272501032171497e-16, -3.940466394584977e-17,
          6.526479765471587e-15, -4.001997596119998e-14, -8.074974023530305e-14, 2.630526317612969e-12,
          -1.2978686569787824e-11, -5.414303004281731e-11, 1.0512230787493491e-09, -4.112660446474588e-09,
          -2.907039081810245e-08, 4.2347881684093947e-07, -1.3654691762635912e-06, -1.38825233939787e-05,
          0.0001867342080199518, -0.0007407025341546313, -0.00603367087142686, 0.24015818242558834)),  # 2**-57.66
        (6.25, 3.25, (3.0838856104922208, -8.717498657592625e-17),
         (7.853492640776817e-09, -1.5326431697700476e-08, -2.1392282163088062e-08, 1.3161444703295835e-07,
          -2.4494885543705085e-07, -2.7611341390071263e-08, 1.4812573370098705e-06, -3.98573682528425e-06,
          2.932700897577466e-06, 1.246505189463652e-05, -4.732070617258352e-05, 6.828710860601949e-05,
          2.4031515729369032e-05, -0.0003550378120077323, 0.0009532893414393805, -0.0016882755356406407,
          0.0024914420979580167, -0.00375120850821507, 0.00537091455355505, 1.0052589676941652)),  # 2**-57.78
        (16.0, 5.0, (4.849906401408584, -8.25220929251163e-17),
         (-1.6216553111882295e-11, 4.315344556193245e-11, 5.054833511086128e-11, -4.384840060565573e-10,
          1.3519271177188858e-09, -3.470337451831067e-09, 7.785067287886863e-09, -1.5255281004141452e-08,
          2.903989693657678e-08, -6.755653834042771e-08, 2.2904563000881653e-07, -9.930291195327593e-07,
          4.526053860310841e-06, -1.968177077154962e-05, 7.599527797814562e-05, -0.00021503011982106505,
          -0.00013871931837656162, 1.0103004648645453)),  # 2**-55.67
    ),
}
# fmt: on


def erf(x: Expr) -> Expr:
    """A polynomial for small |x|, else 1 - erfc(|x|), where erfc need not be right to its own last bit."""
    size = absolute(x)
    if x.dtype is float32:
        marked, _, r = _exp_reduce(-horner(_clamp(size, 0.0, 3.95), _ERF_LARGE))
        scale = _power_of_two(marked)
        large = fma(-_exp_tail(r), scale, 1.0 - scale)
    else:
        clamped = _clamp(size, 0.0, 6.0)
        square = clamped * clamped
        marked, power = _exp_parts(-square)
        rest = power.low - power.high * fma(clamped, clamped, -square)
        ratio = _erfc_ratio(clamped, x.dtype)
        large = 1.0 - fma(power.high, ratio, rest * ratio) * _power_of_two(marked)
    small = size < 0.97
    return copysign(select(small, fma(size, horner(x * x, _ERF[x.dtype]), size), large), x)


def erfc(x: Expr) -> Expr:
    dtype = x.dtype
    y = _erfc_positive(widen(_clamp(absolute(x), 0.0, _ERFC_END[dtype])), dtype)
    y = select(x < 0, 2.0 - y, y)
    if dtype is float32:
        return y
    near_1 = fast_two_sum(const(1.0, dtype), -x)  # less the part of erf(x) beyond x
    near_1 = near_1.high + fma(-x, horner(x * x, _ERF[dtype]), near_1.low)
    return select(absolute(x) < 0.5, near_1, y)


def _erfc_positive(x: Wide, dtype: DType) -> Expr:
    marked, power = _wide_exp(-(x * x), dtype)
    return _wide_scale(marked, power * _erfc_ratio(x, dtype), dtype)


def _erfc_ratio(x: Wide, dtype: DType) -> Wide:
    """exp(x**2) erfc(x) for positive x, which is nearly 1 / (1 + 2x)"""
    centre = _ERFC_CENTRE[dtype]
    t = (x - centre) / (x + centre)
    return _wide_polynomial(t, _ERFC_0[dtype], _ERFC[dtype]) / (x * 2.0 + 1.0)


def _wide_polynomial(t: Wide, constant_term: tuple[float, float], rest: tuple[float, ...]) -> Wide:
    """The polynomial, of which the constant term is the largest, so that only its sum needs more bits."""
    return t * horner(leading(t), rest) + constant(*constant_term, t)


def erfinv(x: Expr) -> Expr:
    """x times a function of w = -log(1 - x**2), in pieces.

    Source: Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition (2011); fitted anew.
    """
    size = absolute(x)
    inside = widen(select(size < 1, size, 0.0))
    w = -_wide_log((1.0 - inside) * (inside + 1.0))
    root = wide_sqrt(w)
    first, *others = _ERFINV[x.dtype]
    ratio = _erfinv_piece(w, first)
    for piece in others:
        ratio = where(leading(w) < piece[0], ratio, _erfinv_piece(root, piece))
    y = copysign(narrow(ratio * inside, x.dtype), x)
    y = select(eq(size, 1), copysign(const(_INF, x.dtype), x), y)
    return select(size <= 1, y, _NAN)


def _erfinv_piece(w: Wide, piece: tuple) -> Wide:
    _, centre, constant_term, rest = piece
    return _wide_polynomial(w - centre, constant_term, rest)
