"""Computes log, log2, log10 and log1p."""

from __future__ import annotations

from ...core.dtype import float32, float64
from ..expr import Expr, absolute, bitcast, cast, const, eq, fma, horner, int_like, one_function, select
from ..wide import fast_two_sum
from .floats import FORMAT, INF, NAN, bits, nearest_float, split_float

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
LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
_LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)
# fmt: on


def _log_reduce(x: Expr) -> tuple[Expr, Expr]:
    """Reduce x = 2**k (1 + f), _LOG_FROM <= 1 + f < 2 _LOG_FROM, for positive finite x: k (as a float) and f."""
    shape = FORMAT[x.dtype]
    subnormal = x < shape.smallest_normal
    lift_by = shape.mantissa + 1
    normal = select(subnormal, x * 2.0**lift_by, x)
    k, f = split_exponent(normal, _LOG_FROM)
    return k + select(subnormal, const(-lift_by, x.dtype), 0.0), f


def split_exponent(x: Expr, begin: float) -> tuple[Expr, Expr]:
    shape, whole = FORMAT[x.dtype], int_like(x)
    first = bits(begin, x.dtype)
    offset = bitcast(x, whole) - first
    k = cast(offset >> shape.mantissa, x.dtype)
    return k, bitcast((offset & ((1 << shape.mantissa) - 1)) + first, x.dtype) - 1


def _log1p_tail(f: Expr, addend: Expr | None = None) -> Expr:
    """Compute log(1 + f) - f, plus a small addend"""
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
    """Correct y for x = inf, NaN, 0 and negative x."""
    y = select(x < INF, y, x)
    return select(x <= 0, select(eq(x, 0), const(-INF, x.dtype), NAN), y)


@one_function
def log(x: Expr) -> Expr:
    k, f = _log_reduce(x)
    return _log_special(x, _log_sum(k, f))


def _log_sum(k: Expr, f: Expr) -> Expr:
    high, low = split_float(*LN2, f.dtype)
    return fma(k, high, f + fma(k, low, _log1p_tail(f)))


@one_function
def log2(x: Expr) -> Expr:
    return _log_of_base(x, _LOG2_E, (1.0, 0.0))


@one_function
def log10(x: Expr) -> Expr:
    return _log_of_base(x, _LOG10_E, _LOG10_2)


def _log_of_base(x: Expr, log_e: tuple[float, float], log_2: tuple[float, float]) -> Expr:
    """Compute k log_2 + (f + tail) log_e, the product f log_e and the sum with k in two floats."""
    dtype = x.dtype
    e_high, e_low = nearest_float(*log_e, dtype)
    k_high, k_low = split_float(*log_2, dtype)
    k, f = _log_reduce(x)
    high = f * e_high
    low = fma(f, e_low, fma(f, e_high, -high))
    total = fast_two_sum(k * k_high, high)
    low = low + fma(k, k_low, total.low)
    return _log_special(x, total.high + fma(_log1p_tail(f), e_high, low))


@one_function
def log1p(x: Expr) -> Expr:
    """1 + x = 2**k (1 + f) with f = 2**-k x + (2**-k - 1), so that no bit of a small x is lost."""
    shape, whole = FORMAT[x.dtype], int_like(x)
    exponent = (bitcast(x + 1, whole) - bits(_LOG_FROM, x.dtype)) >> shape.mantissa
    shift = exponent << shape.mantissa
    # k may exceed the exponents of 2**-k by one: by then 2**-k - 1 is -1 anyway.
    shrink = bitcast(const(bits(1.0, x.dtype), whole) - shift, x.dtype)
    shrink_less_1 = select(exponent < shape.bias, shrink, 0.0) - 1
    scaled = bitcast(bitcast(x, whole) - shift, x.dtype)
    f = scaled + shrink_less_1
    lost = scaled - (f - shrink_less_1)
    lost = fma(fma(f, f, -f), lost, lost)  # over 1 + f, nearly
    # The sum of k ln 2 and f cancels for 1 + x a little above 1.35: keep its error as well.
    k = cast(exponent, x.dtype)
    high, low = split_float(*LN2, x.dtype)
    total = fast_two_sum(k * high, f)
    y = total.high + _log1p_tail(f, fma(k, low, total.low + lost))
    y = select(x < INF, y, x)
    y = select(x <= -1, select(eq(x, -1), const(-INF, x.dtype), NAN), y)
    return select(absolute(x) < 2.0 ** (-shape.mantissa - 2), x, y)
