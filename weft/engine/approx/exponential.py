"""Computes exp, exp2, expm1 and sigmoid."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core.dtype import float32, float64
from ..expr import Expr, absolute, bitcast, const, fma, horner, int_like, ldexp, one_function, select
from ..wide import Double, fast_two_sum
from .floats import FORMAT, bits, clamp


class _Exp(NamedTuple):
    low: float  # exp is 0 below
    high: float  # exp is infinite above
    ln2: tuple[float, float]  # the nearest float and what it misses
    tail: tuple[float, ...]  # (exp(r) - 1 - r) / r**2 on |r| <= ln(2)/2
    exp2: tuple[float, ...]  # (2**r - 1) / r on |r| <= 1/2
    expm1: tuple[float, ...]  # as tail, but on |r| <= 1/2


# fmt: off
EXP = {
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


def exp_reduce(x: Expr) -> tuple[Expr, Expr, Expr]:
    """x = k ln 2 + r, |r| <= ln(2)/2: k + magic (whose low bits are k), k and r."""
    magic, ln2 = FORMAT[x.dtype].magic, EXP[x.dtype].ln2
    marked = fma(x, math.log2(math.e), magic)
    k = marked - magic
    return marked, k, fma(k, -ln2[1], fma(k, -ln2[0], x))


def exp_tail(r: Expr) -> Expr:
    """Compute exp(r) - 1"""
    return fma(r * r, horner(r, EXP[r.dtype].tail), r)


def power_of_two(marked: Expr, more: int = 0) -> Expr:
    """2**(k + more) from k + magic; k + more must be the exponent of a normal number."""
    shape, whole = FORMAT[marked.dtype], int_like(marked)
    one = (shape.bias + more) << shape.mantissa
    return bitcast((bitcast(marked, whole) << shape.mantissa) + one, marked.dtype)


def scaled(y: Expr, marked: Expr) -> Expr:
    """Compute y * 2**k from k + magic, rounded once, so that overflow and subnormal results come out right."""
    magic = bits(FORMAT[y.dtype].magic, y.dtype)
    return ldexp(y, bitcast(marked, int_like(marked)) - magic)


def exp_parts(x: Expr) -> tuple[Expr, Double]:
    """Compute exp(x) = 2**k (high + low): k + magic, and the sum to 5 bits more than the type's precision."""
    marked, _, r = exp_reduce(x)
    return marked, one_plus(r, r * r * horner(r, EXP[x.dtype].tail))


def one_plus(r: Expr, tail: Expr) -> Double:
    high = r + 1
    return fast_two_sum(high, (r - (high - 1)) + tail)


@one_function
def exp(x: Expr) -> Expr:
    x = clamp(x, EXP[x.dtype].low, EXP[x.dtype].high)
    marked, _, r = exp_reduce(x)
    return scaled(exp_tail(r) + 1, marked)


@one_function
def exp2(x: Expr) -> Expr:
    shape = FORMAT[x.dtype]
    x = clamp(x, -shape.bias - shape.mantissa - 4.0, shape.bias + 2.0)
    marked = x + shape.magic
    r = x - (marked - shape.magic)
    return scaled(fma(r, horner(r, EXP[x.dtype].exp2), 1.0), marked)


@one_function
def expm1(x: Expr) -> Expr:
    """2**k (exp(r) - 1) + (2**k - 1), halved meanwhile so that k = 128 does not overflow.

    k is 0 up to |x| = 1/2: with k = 1 and x below that the sum would cancel bits that exp(r) - 1 does not have.
    """
    shape, constants = FORMAT[x.dtype], EXP[x.dtype]
    clamped = clamp(x, -1.5 * shape.mantissa, constants.high)
    small = absolute(x) < 0.5
    marked = select(small, shape.magic, fma(clamped, math.log2(math.e), shape.magic))
    k = marked - shape.magic
    reduced = fma(k, -constants.ln2[0], clamped)
    r = fma(k, -constants.ln2[1], reduced)
    lost = fma(k, -constants.ln2[1], reduced - r)
    half = power_of_two(marked - 1)
    tail = fma(r * r, horner(r, constants.expm1), lost)
    less = half - 0.5
    total = fast_two_sum(less, half * r)
    y = (total.high + (total.low + fma(half, tail, (half - less) - 0.5))) * 2
    return select(absolute(x) < 2.0 ** (-shape.mantissa - 2), x, y)


# sigmoid adds 1 and exp(-x), both times this: exp(-x) overflows before the result is 0. Beyond the second it is 1.
_SIGMOID_SHRINK = {float32: (-32, 60.0), float64: (-64, 60.0)}


@one_function
def sigmoid(x: Expr) -> Expr:
    """Compute 1 / (1 + exp(-x)), the sum and the quotient with their errors."""
    shrink, one_from = _SIGMOID_SHRINK[x.dtype]
    one = const(2.0**shrink, x.dtype)
    marked, _, r = exp_reduce(clamp(-x, -one_from, -EXP[x.dtype].low))
    total = one_plus_exp(exp_tail(r), power_of_two(marked, shrink), one)
    inverse = 1.0 / total.high
    rest = fma(-inverse, total.low, fma(-inverse, total.high, 1.0))
    return fma(rest, inverse, inverse) * one


def one_plus_exp(tail: Expr, scale: Expr, one: Expr) -> Double:
    """one + scale (1 + tail) where the tail is from sqrt(1/2) - 1 to sqrt(2) - 1, so that the second sum is at least half the first.

    The sum of the powers of two is exact unless one of them is less than the last bit of the other. Then its error counts only
    where `scale` is the larger one, for which it is found.
    """
    powers = scale + one
    high = fma(scale, tail, powers)
    return Double(high, fma(scale, tail, powers - high) + (one - (powers - scale)))
